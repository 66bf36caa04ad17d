"""Binary-quantised embeddings, ranked by their inner product with a float query.

This module handles the two layouts that embedding packages use, and the scores. The codes are in an
`Index`, and the answer is exact: every embedding is ranked, not a shortlist.
"""

from __future__ import annotations

import os
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bitweigh._checks import (
    MAX_BITS,
    as_array,
    as_choice,
    as_deadline,
    as_integer,
    as_k,
    as_query_costs,
)
from bitweigh._index.filters import Filter
from bitweigh._index.request import search_options
from bitweigh._results import ScoredResult
from bitweigh.costs import inner_product
from bitweigh.index import Index
from bitweigh.typing import BuildMode, Codes, Floats, Ids, OnDuplicate, OnMissing, Precision

__all__ = ["BinaryEmbeddings", "quantize"]


# "binary" is "ubinary" minus 128, which is the same as flipping this bit.
_SIGN_BIT = np.uint8(128)


def quantize(x: ArrayLike, precision: Precision = "ubinary") -> NDArray[np.uint8 | np.int8]:
    """Quantise embeddings to one bit per dimension: whether it is greater than 0.

    Returns what ``sentence_transformers.quantize_embeddings`` returns, without that package.

    Parameters
    ----------
    x : float (dim,) or (n, dim)
        Embeddings, without NaN.
    precision : "ubinary" or "binary"
        "ubinary" is ``np.packbits(x > 0, axis=-1)``, "binary" is that minus 128.

    Returns
    -------
    uint8 ("ubinary") or int8 ("binary"), (n_bytes,) or (n, n_bytes), n_bytes = dim / 8 rounded up

    Examples
    --------
    >>> import numpy as np
    >>> from bitweigh.embeddings import quantize
    >>> x = np.array([[0.3, -0.1, 0.2, 0.0, 0.7, -0.5, -0.2, 0.4]], dtype=np.float32)
    >>> quantize(x)
    array([[169]], dtype=uint8)
    >>> quantize(x, "binary")
    array([[41]], dtype=int8)

    """
    kind = as_choice(precision, "precision", ("ubinary", "binary"))
    array = as_array(x, "x")
    if array.dtype.kind != "f":
        raise TypeError(f"x must be float embeddings, got {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"x must have shape (dim,) or (n, dim), got {array.shape}")
    if np.isnan(array).any():
        position = np.argwhere(np.isnan(array))[0].tolist()
        raise ValueError(f"x must not contain NaN, got NaN at x{position}")
    packed: Codes = np.packbits(array > 0, axis=-1)
    return packed if kind == "ubinary" else (packed ^ _SIGN_BIT).view(np.int8)


class BinaryEmbeddings:
    """Embeddings of one bit per dimension, searched with float queries.

    The score of an embedding is the inner product of the query with its bits: the score usually
    computed for a shortlist only, here for all embeddings. Answers are exact, with equal scores in
    ascending id. Threads may search while others change it.

    Parameters
    ----------
    dim : int
        Dimensions of an embedding before it was quantised, 1 to 8192.
    bands, band_bits, memory_limit, build
        As in :class:`Index`.

    Examples
    --------
    >>> import numpy as np
    >>> import bitweigh
    >>> from bitweigh.embeddings import BinaryEmbeddings, quantize
    >>> x = np.random.default_rng(1).standard_normal((1000, 64)).astype(np.float32)  # (1000, 64)
    >>> embeddings = BinaryEmbeddings(dim=64)
    >>> embeddings.add(quantize(x))  # (1000, 8) uint8
    >>> scores, ids = embeddings.search(x[:3], k=5)  # (3, 5) float64, (3, 5) int64
    >>> ids[:, 0]
    array([0, 1, 2])

    """

    def __init__(
        self,
        dim: int,
        *,
        bands: int | None = None,
        band_bits: int | None = None,
        memory_limit: int | None = None,
        build: BuildMode = "auto",
    ) -> None:
        """Create an empty collection."""
        self._index = Index(
            as_integer(dim, "dim", 1, MAX_BITS),
            bands=bands,
            band_bits=band_bits,
            memory_limit=memory_limit,
            build=build,
        )

    @property
    def dim(self) -> int:
        """Dimensions of an embedding before it was quantised."""
        return self._index.n_bits

    @property
    def index(self) -> Index:
        """The index of the codes, for everything else that an `Index` can do."""
        return self._index

    @property
    def ids(self) -> Ids:
        """All ids in ascending order, int64 (n,)."""
        return self._index.ids

    @property
    def note(self) -> dict[str, Any]:
        """The note that was saved or loaded last, as a copy, as `Index.note`."""
        return self._index.note

    def __len__(self) -> int:
        """Return the number of embeddings."""
        return len(self._index)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        """Whether there is an embedding with this id."""
        return id in self._index

    def __repr__(self) -> str:
        """Summarise the collection."""
        return f"<bitweigh.BinaryEmbeddings: {len(self)} embeddings of {self.dim} dimensions>"

    def add(
        self,
        embeddings: ArrayLike,
        ids: ArrayLike | None = None,
        *,
        on_duplicate: OnDuplicate = "error",
    ) -> None:
        """Add quantised embeddings; their dtype says which of the two layouts they have.

        Parameters
        ----------
        embeddings : uint8 or int8 (n, n_bytes)
            uint8 is what the precision "ubinary" gives, ``np.packbits(x > 0, axis=-1)``; int8 what
            "binary" gives, that minus 128. n_bytes is dim / 8 rounded up.
        ids : int64 (n,), optional
            Ids of your own, not negative and distinct. By default consecutive numbers after the
            largest id ever used, starting at 0.
        on_duplicate : "error" or "replace"
            What to do if an id is already in use: raise ValueError and add nothing, or replace its
            embedding.

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong dtype or shape, or an id is negative, repeated or in use.
            Nothing is added then.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=16)
        >>> embeddings.add(np.array([[3, 255]], dtype=np.uint8), ids=[10])
        >>> embeddings.add(np.array([[-125, 127]], dtype=np.int8), ids=[20])
        >>> embeddings.index.codes_of([10, 20])
        array([[  3, 255],
               [  3, 255]], dtype=uint8)

        """
        self._index.add(_as_packed(embeddings, self.dim), ids, on_duplicate=on_duplicate)

    def search(
        self,
        queries: ArrayLike,
        k: int,
        *,
        signed: bool = False,
        threads: int | None = None,
        allow: ArrayLike | None = None,
        deny: ArrayLike | None = None,
        filter: Filter | None = None,  # noqa: A002
        timeout: float | None = None,
    ) -> ScoredResult:
        """Find the k embeddings with the largest inner product with a float query, exactly.

        Parameters
        ----------
        queries : float32 or float64 (dim,) or (nq, dim)
            Embeddings as the model returns them, not quantised.
        k : int
            Number of results, at least 1.
        signed : bool
            Count the bits as -1 and +1 instead of 0 and 1. That changes the scores of a query by a
            factor of 2 and a constant, and with it their rounding: embeddings whose scores differ
            by no more than the rounding may change places, all others keep theirs.
        threads, allow, deny, filter, timeout
            As in `Index.search`.

        Returns
        -------
        ScoredResult
            ``scores`` float64 (nq, k) and ``ids`` int64 (nq, k), largest score first, equal scores
            in ascending id; ``(k,)`` for a single query. If there are fewer than k embeddings, the
            rest is -inf and -1. A score is exactly minus the distance that `Index.search` gives for
            ``bitweigh.costs.inner_product(queries)``.

        Raises
        ------
        TypeError, ValueError
            If an argument has the wrong dtype or shape, or a query is not finite.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> query = np.array([0.5, -1.0, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0])
        >>> embeddings.add(np.packbits([[1, 0, 1, 0, 0, 0, 0, 0]], axis=1))
        >>> embeddings.add(np.packbits([[0, 1, 0, 0, 0, 0, 0, 0]], axis=1))
        >>> embeddings.search(query, k=3)
        ScoredResult(scores=array([ 0.75, -1.  ,  -inf]), ids=array([ 0,  1, -1]))

        """
        deadline = as_deadline(timeout)
        costs = inner_product(_as_queries(queries, self.dim), signed=signed)
        k = as_k(k)
        options = search_options(threads=threads, deadline=deadline)
        checked = as_query_costs(costs, self.dim, deadline)
        found = self._index._nearest(checked, k, options, allow, deny, filter)
        # Not -distances, which would turn 0.0 into -0.0.
        return ScoredResult(0.0 - found.distances, found.ids)

    def filter(self, *, allow: ArrayLike | None = None, deny: ArrayLike | None = None) -> Filter:
        """Create a filter for many searches: only these embeddings, or all but these.

        It works as that of `Index.filter`.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2], [3]], dtype=np.uint8))
        >>> unseen = embeddings.filter(deny=[0, 1])
        >>> embeddings.search(np.ones(8), k=2, filter=unseen).ids
        array([ 2, -1])

        """
        return Filter(allow=allow, deny=deny)

    def remove(self, ids: ArrayLike, *, on_missing: OnMissing = "error") -> int:
        """Remove embeddings by id, and return how many were removed.

        Parameters
        ----------
        ids : int64 (n,)
            Ids to remove.
        on_missing : "error" or "ignore"
            What to do if an id is unknown: raise KeyError and remove nothing, or ignore it.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> embeddings.remove([0])
        1

        """
        return self._index.remove(ids, on_missing=on_missing)

    def contains(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Whether there are embeddings with these ids; ``id in embeddings`` asks for one.

        Examples
        --------
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> embeddings.contains([1, 7])
        array([ True, False])

        """
        return self._index.contains(ids)

    def save(self, path: str | os.PathLike[str], *, note: dict[str, Any] | None = None) -> None:
        """Save to a folder, as `Index.save` does; ``bitweigh.load`` opens it as an `Index`.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> embeddings = BinaryEmbeddings(dim=8)
        >>> embeddings.add(np.array([[1], [2]], dtype=np.uint8))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     embeddings.save(folder)
        ...     BinaryEmbeddings.load(folder)
        <bitweigh.BinaryEmbeddings: 2 embeddings of 8 dimensions>

        """
        self._index.save(path, note=note)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        mmap: bool = False,
        *,
        verify: bool | None = None,
        build: BuildMode = "auto",
    ) -> Self:
        """Load from a folder; the arguments and errors are those of `Index.load`.

        Raises
        ------
        ValueError
            If the folder has an index with ``bitorder="little"``: its bits are not in the order of
            the dimensions.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> from bitweigh.embeddings import BinaryEmbeddings
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     BinaryEmbeddings(dim=256).save(folder)
        ...     BinaryEmbeddings.load(folder).dim
        256

        """
        index = Index.load(path, mmap, verify=verify, build=build)
        if index.bitorder != "big":
            raise ValueError(
                f"{os.fspath(path)} has an index with bitorder={index.bitorder!r}, but embeddings "
                "are packed with bitorder='big'; open it with bitweigh.Index.load"
            )
        loaded = cls(index.n_bits)
        loaded._index = index
        return loaded


def _as_packed(embeddings: ArrayLike, dim: int) -> NDArray[Any]:
    """Quantised embeddings of either layout as packed codes; `Index` checks the rest."""
    array = as_array(embeddings, "embeddings")
    n_bytes = (dim + 7) // 8
    if array.dtype not in (np.uint8, np.int8):
        hint = ""
        if array.dtype.kind == "f":
            hint = "; quantise floats with bitweigh.embeddings.quantize(x)"
        elif array.dtype == np.bool_:
            hint = "; pack bits with np.packbits(bits, axis=-1)"
        raise TypeError(
            "embeddings must be uint8 (precision 'ubinary') or int8 (precision 'binary'), got "
            f"{array.dtype}{hint}"
        )
    if array.ndim != 2 or array.shape[1] != n_bytes:
        hint = ""
        if array.shape == (n_bytes,):
            hint = "; pass a single embedding as embeddings[np.newaxis]"
        elif array.ndim == 2 and array.shape[1] == dim:
            hint = (
                "; one number per dimension is another quantisation: quantise with the precision "
                "'ubinary' or 'binary', or pack bits with np.packbits(bits, axis=-1)"
            )
        raise ValueError(
            f"embeddings must have shape (n, {n_bytes}) for dim={dim}, got {array.shape}{hint}"
        )
    if array.dtype == np.int8:
        return np.ascontiguousarray(array).view(np.uint8) ^ _SIGN_BIT
    return array


def _as_queries(queries: ArrayLike, dim: int) -> Floats:
    """Finite float queries ``(dim,)`` or ``(nq, dim)``."""
    array = as_array(queries, "queries")
    if array.dtype.char not in "fd" or not array.dtype.isnative:
        hint = ""
        if array.dtype.kind == "f":
            hint = "; convert them with queries.astype(np.float32)"
        elif array.dtype in (np.uint8, np.int8, np.bool_):
            hint = "; pass queries as the model returns them, only what is added is quantised"
        raise TypeError(f"queries must be float32 or float64, got {array.dtype}{hint}")
    if array.ndim not in (1, 2) or array.shape[-1] != dim:
        raise ValueError(f"queries must have shape ({dim},) or (nq, {dim}), got {array.shape}")
    finite = np.isfinite(array)
    if not finite.all():
        position = tuple(np.argwhere(~finite)[0].tolist())
        raise ValueError(
            f"queries must be finite, got {array[position]} at queries{list(position)}"
        )
    return array
