"""VectorIndex: float vectors in, their codes searched exactly, candidates ranked by true distance.

What it holds is replaced whole, never changed: any number of threads may search while one changes
it.
"""

from __future__ import annotations

import copy
import os
import threading
from dataclasses import replace
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import MAX_BITS, as_choice, as_ids, as_integer, as_n_bits
from bitweigh._forks import renew_lock_after_fork
from bitweigh._vectors import files
from bitweigh._vectors.changing import Changeable
from bitweigh._vectors.codes import held_codes
from bitweigh._vectors.learning import MOST_BITS_BY_DEFAULT, as_hasher, as_weigher
from bitweigh._vectors.state import VectorState
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._estimator import not_fitted_error
from bitweigh.index import Index
from bitweigh.typing import HasherName, Ids, Metric, VectorDtype, WeigherName
from bitweigh.weighers._base import Weigher

__all__ = ["VectorIndex"]


class VectorIndex(Changeable):
    """Nearest vectors by binary codes: hashes, weighs and searches, and keeps it all in step.

    A hasher makes codes of the vectors. A query keeps its real numbers, and a weigher makes costs
    of them; the search over the codes is exact for these costs. With `rerank` the vectors are kept
    in a file, and the best of more candidates by true distance are returned.

    Any number of threads may search while others change or save it; each search sees one state.

    Parameters
    ----------
    n_bits : int, optional
        Bits of a code. By default 128, or with "itq" one for each feature where there are fewer:
        ITQ makes no more. With "sign" there is always one for each feature, and a hasher of your
        own has its own number.
    hasher : "itq", "lsh", "sign" or a hasher
        What makes codes of vectors; docs/choosing.md compares them. A copy of it is fitted.
    weigher : "asym", "wh", "inner_product" or a weigher
        What makes costs of queries. A copy of it is fitted.
    metric : "euclidean" or "cosine"
        With "cosine" all vectors are divided by their length; zero vectors are refused.
    rerank : "float16" or "float32", optional
        Keep the vectors, rounded to this, and rank candidates by their distance to the query.
    seed : int
        Draws the rows to learn from, and is the seed of what is named "itq", "lsh", "sign" or "wh".
    bands, band_bits, memory_limit : int, optional
        As in :class:`Index`.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> rng = np.random.default_rng(1)
    >>> vectors = rng.standard_normal((1000, 32)).astype(np.float32)  # (1000, 32)
    >>> index = bitweigh.VectorIndex(n_bits=32, rerank="float32").fit(vectors)
    >>> index.add(vectors)
    >>> index.search(vectors[7], k=3).ids[0]
    np.int64(7)

    """

    def __init__(
        self,
        *,
        n_bits: int | None = None,
        hasher: HasherName | Hasher = "itq",
        weigher: WeigherName | Weigher = "asym",
        metric: Metric = "euclidean",
        rerank: VectorDtype | None = None,
        seed: int = 0,
        bands: int | None = None,
        band_bits: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        """Make an empty index that has learned nothing yet."""
        bits = MOST_BITS_BY_DEFAULT if n_bits is None else as_n_bits(n_bits)
        self._seed = as_integer(seed, "seed", 0, 2**63 - 1)
        self._hasher = as_hasher(hasher, bits, self._seed)
        self._bits_may_be_fewer = n_bits is None and hasher == "itq"
        self._weigher = as_weigher(weigher, self._seed)
        as_choice(metric, "metric", ("euclidean", "cosine"))
        self._metric: Metric = metric
        if rerank is not None:
            as_choice(rerank, "rerank", ("float16", "float32"))
        self._rerank: VectorDtype | None = rerank
        self._options: dict[str, Any] = {
            "bands": bands,
            "band_bits": band_bits,
            "memory_limit": memory_limit,
        }
        # Refuses what no index of so many bits would take; how many "sign" makes is not known yet.
        Index(self._hasher.get_params().get("n_bits", MAX_BITS), **self._options)
        self._held: VectorState | None = None
        self._writing = threading.Lock()
        renew_lock_after_fork(self)

    @property
    def index(self) -> Index:
        """The codes as they are now, an `Index` that can do all but change: its codes are ours.

        Its ``copy()`` is an `Index` of its own.
        """
        return self._now().index

    @property
    def hasher(self) -> Hasher:
        """A copy of the fitted hasher: fitting it anew leaves the index as it is."""
        return copy.copy(self._now().hasher)

    @property
    def weigher(self) -> Weigher:
        """A copy of the fitted weigher."""
        return copy.copy(self._now().weigher)

    @property
    def n_features(self) -> int:
        """Numbers of a vector."""
        return self._now().hasher.n_features_in_

    @property
    def metric(self) -> Metric:
        """What vectors are compared by."""
        return self._metric

    @property
    def rerank(self) -> VectorDtype | None:
        """How the vectors are kept, if they are."""
        return self._rerank

    @property
    def ids(self) -> Ids:
        """All ids in ascending order, int64 (n,)."""
        return self._now().index.ids

    def __len__(self) -> int:
        """Return the number of vectors."""
        return 0 if self._held is None else len(self._held.index)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether there is a vector with this id."""
        return self._held is not None and id in self._held.index

    def __repr__(self) -> str:
        """Say what the index holds."""
        held = self._held
        if held is None:
            return "<bitweigh.VectorIndex: not fitted>"
        names = f"{type(held.hasher).__name__} and {type(held.weigher).__name__}"
        return (
            f"<bitweigh.VectorIndex: {len(self)} vectors of {self.n_features}, "
            f"{held.index.n_bits} bits by {names}, {self._metric}>"
        )

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: what is kept may be larger than memory."""
        raise TypeError(
            "a VectorIndex cannot be pickled or copied: save it to a folder, and load that"
        )

    def _now(self) -> VectorState:
        held = self._held
        if held is None:
            raise not_fitted_error()("This VectorIndex is not fitted yet: call fit first")
        return held

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are vectors with these ids, bool (n,); ``id in index`` asks for one."""
        return self._now().index.contains(ids)

    def vectors_of(self, ids: ArrayLike) -> NDArray[Any]:
        """Get vectors back by id, as they are kept: rounded, and of length 1 with "cosine".

        KeyError names the first id that is not in the index.
        """
        held = self._now()
        if held.vectors is None:
            raise ValueError("vectors are kept only by an index that is made with rerank=")
        wanted = as_ids(ids)
        found = held.index.contains(wanted)
        if not found.all():
            raise KeyError(int(wanted[np.argmin(found)]))
        return held.vectors.of(wanted)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save everything to a folder, which then holds what it held before or this.

        Parameters
        ----------
        path : str or path
            A folder that does not exist, is empty or holds a vector index, which is replaced.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import bitweigh
        >>> index = bitweigh.VectorIndex(n_bits=8, hasher="lsh").fit(np.eye(4))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     index.save(folder)
        ...     bitweigh.VectorIndex.load(folder)
        <bitweigh.VectorIndex: 0 vectors of 4, 8 bits by LSH and Asym, euclidean>

        """
        files.save(self._now(), path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], mmap: bool = False) -> Self:
        """Load an index from the folder that it was saved to.

        Parameters
        ----------
        path : str or path
            The folder.
        mmap : bool
            Leave codes and vectors in their files, and read them when they are needed. Else codes
            are read and vectors copied to a temporary file, and all compared with their checksums.

        Raises
        ------
        CorruptFileError
            If a file is damaged or missing; it says which.
        FileNotFoundError
            If there is no vector index in that folder.

        """
        held = files.load(path, mmap)
        options = held.index._policy.band_options
        index = cls(
            n_bits=held.index.n_bits,
            hasher=held.hasher,
            weigher=held.weigher,
            metric=held.metric,
            rerank=held.rerank,
            seed=held.seed,
            bands=options.bands,
            band_bits=options.band_bits,
            memory_limit=options.memory_limit,
        )
        index._held = replace(held, index=held_codes(held.index))
        return index
