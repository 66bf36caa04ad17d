"""The index: what it is made with, what it holds, how it is saved and loaded."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from bitweigh import _core, _storage, _system
from bitweigh._checks import as_bitorder, as_costs, as_integer, as_k, as_n_bits
from bitweigh._index.bands import BandOptions
from bitweigh._index.changing import survive_fork
from bitweigh._index.copying import AnyCopyable, Copyable
from bitweigh._index.explain import Explanation, explanation_of
from bitweigh._index.growth import Growth
from bitweigh._index.lookups import Lookups
from bitweigh._index.searching import METHODS, nearest
from bitweigh._index.state import State
from bitweigh._results import Memory
from bitweigh.errors import CorruptFileError
from bitweigh.typing import BitOrder, Method

__all__ = ["Index", "load"]

_MOST_BITS: int = _core.max_band_bits


class Index(Lookups, Copyable):
    """Exact nearest binary codes under a weighted Hamming distance.

    A query is an array of costs: ``costs[i, v]`` is paid by a code whose bit i is v, and the
    distance is the sum. :mod:`bitweigh.costs` makes them from bit weights, float queries or plain
    Hamming distance. Answers are exact for every finite cost, equal distances go to the lowest id,
    and the result is the same to the last bit on every CPU and for any number of threads.

    Any number of threads may search while others change or save it; each search sees one state.

    Parameters
    ----------
    n_bits : int
        Bits of a code, 1 to 8192.
    bitorder : "big" or "little"
        Order of the bits inside a byte, as in ``np.packbits``.
    bands : int, optional
        How many times the rows are stored, each time sorted by other bits of the code, so that a
        search need not look at most of them. By default as many as the bits allow, at
        most 16, in at most half of the free memory.
    band_bits : int, optional
        Bits that each band is sorted by, at most 24. By default such that some 16 rows share them,
        or 4 where codes are long.
    memory_limit : int, optional
        Bytes that the index may take. Fewer bands are built where more would not fit.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> index = bitweigh.Index(n_bits=4)
    >>> index.add(np.packbits([[0, 0, 0, 1], [1, 1, 0, 0], [1, 0, 1, 0]], axis=1))
    >>> query = np.array([0.9, -0.2, 0.1, -0.8])
    >>> distances, ids = index.search(bitweigh.costs.inner_product(query), k=2)
    >>> ids
    array([2, 1])

    """

    def __init__(
        self,
        n_bits: int,
        *,
        bitorder: BitOrder = "big",
        bands: int | None = None,
        band_bits: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        """Make an empty index."""
        self._n_bits = as_n_bits(n_bits)
        self._bitorder = as_bitorder(bitorder)
        self._growth = Growth(
            self._n_bits,
            self._bitorder,
            BandOptions(
                None if bands is None else as_integer(bands, "bands", 1, self._n_bits),
                None if band_bits is None else as_integer(band_bits, "band_bits", 1, _MOST_BITS),
                None
                if memory_limit is None
                else as_integer(memory_limit, "memory_limit", 0, 2**62),
            ),
        )
        self._state = State()
        self._writing = threading.Lock()
        survive_fork(self)
        self._source: _Source | None = None
        # What never changes an answer; tests set it so that few rows reach every path.
        self._kernel = _system.KERNEL
        self._tuning = _core.Tuning()

    @property
    def n_bits(self) -> int:
        """Bits of a code."""
        return self._n_bits

    @property
    def bitorder(self) -> BitOrder:
        """Order of the bits inside a byte."""
        return self._bitorder

    def __len__(self) -> int:
        """Return the number of codes."""
        return self._state.rows

    def __repr__(self) -> str:
        """Say what the index holds."""
        return f"<bitweigh.Index: {len(self)} codes of {self._n_bits} bits, {self._bitorder}>"

    def explain(self, costs: ArrayLike, k: int, *, method: Method = "auto") -> Explanation:
        """Search for one query, and say how it was done and why.

        Parameters
        ----------
        costs : float32 or float64 (n_bits, 2)
            One query.
        k, method
            As in `search`.

        Returns
        -------
        Explanation
            The plan, its reason, what was predicted and what was done. ``print`` it, or take
            ``as_dict()``.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.arange(100, dtype=np.uint8).reshape(-1, 1))
        >>> index.explain(np.ones((8, 2)), 3).plan
        'scan'

        """
        checked, single = as_costs(costs, self._n_bits)
        if not single:
            raise ValueError(f"costs must be one query, (n_bits, 2), got {np.shape(costs)}")
        k = as_k(k)
        state = self._state_for(method)
        ask = self._ask(checked, True, 1, method, None, None, state)
        _, stats = nearest(ask, k, stats=True)
        assert stats is not None
        return explanation_of(state, self._n_bits, self._growth.band_options, method, k, stats)

    def memory(self) -> Memory:
        """Bytes that the index takes, by part.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=64)
        >>> index.add(np.zeros((320, 8), dtype=np.uint8))
        >>> index.memory().codes
        2560
        >>> index.memory().total
        2560

        """
        parts = [part.memory() for part in self._state.parts()]
        return (
            Memory(*(sum(own) for own in zip(*parts, strict=True)))
            if parts
            else Memory(*[0] * len(Memory._fields))
        )

    def _state_for(self, method: Method) -> State:
        """The state, with the bands that the method uses."""
        if not isinstance(method, str) or method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {method!r}")
        if method == "scan":
            return self._state
        return self._state_with_bands(1 if method == "probe" else self._growth.banded_rows)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the index to a folder; what is there already is not written again.

        The folder holds the index it held before or this one, whenever the program or the machine
        may stop. Others may search and change the index meanwhile: what is saved is the index as it
        is now. docs/file-format.md describes the files.

        Parameters
        ----------
        path : str or path
            A folder that does not exist, is empty or holds an index, which is replaced.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(folder)
        ...     bitweigh.load(folder)
        <bitweigh.Index: 2 codes of 8 bits, big>

        """
        _storage.save(self._content(), path)

    def verify(self) -> None:
        """Check that everything in the index agrees, and that nothing read from files has changed.

        Takes about as long as building the index.

        Raises
        ------
        CorruptFileError
            It says which file or part of the index is damaged.

        Examples
        --------
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.Index(n_bits=8)
        >>> index.add(np.array([[1], [2]], dtype=np.uint8))
        >>> index.verify()

        """
        _storage.verify(
            self._content(), Path("index") if self._source is None else self._source.folder
        )

    def _content(self) -> _storage.Content:
        return _storage.Content(
            self._n_bits, self._bitorder, self._growth.band_options, self._state
        )

    @staticmethod
    def _of(content: _storage.Content, source: _Source | None = None) -> Index:
        options = content.options
        index = Index(
            content.n_bits,
            bitorder=content.bitorder,
            bands=options.bands,
            band_bits=options.band_bits,
            memory_limit=options.memory_limit,
        )
        index._state = content.state
        index._source = source
        return index

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        """Pickle the files of its folder, or, of a mapped index, where they are."""
        cls, own = type(self), self._added_attributes()
        source = self._source
        if source is not None and self._state is source.mapped and source.is_still_there():
            return _from_source, (str(source.folder), source.checksum, cls, own)
        return _from_files, (_storage.to_files(self._content()), cls, own)


Index._own_attributes = frozenset(vars(Index(1)))


class _Source(NamedTuple):
    """Where an index was loaded from."""

    folder: Path
    checksum: str
    """Of the manifest."""
    mapped: State | None
    """What was mapped then."""

    def is_still_there(self) -> bool:
        """Whether the folder holds the same index now."""
        try:
            return _storage.read_manifest(self.folder).checksum == self.checksum
        except (OSError, CorruptFileError):
            return False


def _from_source(
    folder: str, checksum: str, cls: type[AnyCopyable], attributes: dict[str, Any]
) -> AnyCopyable:
    index = load(folder, mmap=True)
    if index._source is None or index._source.checksum != checksum:
        raise ValueError(f"{folder} has another index than when this one was pickled")
    return index._as(cls, {**vars(index), **attributes})


def _from_files(
    files: dict[str, bytes], cls: type[AnyCopyable], attributes: dict[str, Any]
) -> AnyCopyable:
    index = Index._of(_storage.from_files(files))
    return index._as(cls, {**vars(index), **attributes})


def load(path: str | os.PathLike[str], mmap: bool = False, *, verify: bool | None = None) -> Index:
    """Load an index from the folder it was saved to.

    Parameters
    ----------
    path : str or path
        The folder.
    mmap : bool
        Whether to leave the codes in their files and read them when they are needed, rather than
        read everything now. Takes milliseconds for an index of any size, and processes that map the
        same folder share the memory. The index can be changed all the same; the files stay.
    verify : bool, optional
        Whether to compare every byte with its checksum; by default unless mapped. Where it is not
        done a damaged file may lead to wrong answers, but to nothing worse.

    Returns
    -------
    Index

    Raises
    ------
    CorruptFileError
        If a file is damaged or missing; it says which.
    FileNotFoundError
        If there is no index in that folder.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import bitweigh
    >>> index = bitweigh.Index(n_bits=8)
    >>> index.add(np.array([[1], [2]], dtype=np.uint8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     index.save(folder)
    ...     mapped = bitweigh.load(folder, mmap=True)
    >>> len(mapped)
    2

    """
    content, checksum = _storage.load(path, mmap, (not mmap) if verify is None else verify)
    source = _Source(Path(path).resolve(), checksum, content.state if mmap else None)
    return Index._of(content, source)
