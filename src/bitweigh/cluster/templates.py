"""What rows of a version are made into: codes alone, or codes with the vectors they belong to.

A version of vectors or embeddings names an empty index folder, its template. All shards are like
it: the same hasher and weigher, the same kept numbers. So the rows of any task become what one
index would have made of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

from bitweigh._checks import as_row_ids, as_rows
from bitweigh._embeddings import files as embedding_files
from bitweigh._embeddings.changing import with_embeddings
from bitweigh._embeddings.state import EmbeddingsState, no_vectors
from bitweigh._index.evidence import CostsOfCodes
from bitweigh._storage import index_files
from bitweigh._storage.note import NO_NOTE
from bitweigh._vectors import files as vector_files
from bitweigh._vectors.adding import with_vectors
from bitweigh._vectors.bit_weights import costs_of_codes
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors
from bitweigh.cluster.version import Kind, ShardOptions
from bitweigh.embeddings import BinaryEmbeddings
from bitweigh.hashers._vectors import as_vectors
from bitweigh.index import Index
from bitweigh.typing import BitOrder, Codes, Ids, Metric
from bitweigh.vector_index import VectorIndex

__all__ = [
    "CodesTemplate",
    "EmbeddingsTemplate",
    "Opened",
    "Template",
    "VectorTemplate",
    "VectorsTemplate",
    "loaded_template",
    "template_like",
]


class Opened(NamedTuple):
    """A shard in memory or mapped."""

    codes: Index
    vectors: Vectors | None
    """None if none are kept."""


class Template(ABC):
    """What the rows of all shards have in common."""

    kind: Kind
    n_bits: int
    bitorder: BitOrder

    takes_vectors: bool
    """Whether a source has vectors, and not codes."""
    costs_of_codes: CostsOfCodes | None = None
    """As that of `SegmentPolicy`."""

    @property
    @abstractmethod
    def empty_vectors(self) -> Vectors | None:
        """The vectors of a shard without rows; None if no vectors are kept."""

    @abstractmethod
    def converted(
        self, values: NDArray[Any], ids: NDArray[Any] | None
    ) -> tuple[Codes, Ids | None, NDArray[Any] | None]:
        """Codes, ids and kept vectors of rows as a caller gives them; raises for wrong ones."""

    @abstractmethod
    def save_shard(
        self, content: index_files.Content, vectors: Vectors | None, folder: Path
    ) -> None:
        """Write a shard; the vectors are those of all its ids, and perhaps of others."""

    @abstractmethod
    def load_shard(self, folder: Path, mmap: bool, verify: bool | None = None) -> Opened:
        """Open a shard."""

    @abstractmethod
    def verify_shard(self, folder: Path) -> Index:
        """Check a shard in full, and return its codes; CorruptFileError if it is damaged."""


class CodesTemplate(Template):
    """Rows are codes, and nothing else is kept."""

    kind: Kind = "codes"
    takes_vectors = False

    def __init__(self, n_bits: int, bitorder: BitOrder) -> None:
        """Keep what codes are."""
        self.n_bits = n_bits
        self.bitorder = bitorder

    @property
    def empty_vectors(self) -> None:
        """None."""
        return

    def converted(
        self, values: NDArray[Any], ids: NDArray[Any] | None
    ) -> tuple[Codes, Ids | None, None]:
        """The rows themselves, checked."""
        return *as_rows(values, ids, self.n_bits, self.bitorder), None

    def save_shard(
        self, content: index_files.Content, vectors: Vectors | None, folder: Path
    ) -> None:
        """Write an index."""
        assert vectors is None
        index_files.save(content, folder)

    def load_shard(self, folder: Path, mmap: bool, verify: bool | None = None) -> Opened:
        """Open an index."""
        return Opened(Index.load(folder, mmap, verify=verify), None)

    def verify_shard(self, folder: Path) -> Index:
        """Check an index."""
        index = Index.load(folder, mmap=True, verify=True)
        index.verify()
        return index


class VectorsTemplate(Template):
    """Rows are vectors, hashed and kept as a `VectorIndex` does."""

    kind: Kind = "vectors"
    takes_vectors = True

    def __init__(self, state: VectorState) -> None:
        """Keep a state without rows."""
        self.state = state
        self.n_bits = state.index.n_bits
        self.bitorder = state.index.bitorder
        self.metric: Metric = state.metric
        self.costs_of_codes = costs_of_codes(state.hasher, state.weigher)

    @property
    def empty_vectors(self) -> Vectors | None:
        """The vectors of a shard without rows."""
        if self.state.rerank is None:
            return None
        return Vectors.empty(self.state.rerank, self.state.hasher.n_features_in_)

    def converted(
        self, values: NDArray[Any], ids: NDArray[Any] | None
    ) -> tuple[Codes, Ids | None, NDArray[Any] | None]:
        """What `VectorIndex.add` makes of the rows."""
        vectors = as_vectors(values, "VectorIndex", self.state.hasher.n_features_in_)
        empty = replace(self.state, vectors=self.empty_vectors)
        return _converted(with_vectors(empty, vectors, None, progress=False), ids)

    def save(self, folder: Path) -> None:
        """Write the template to a folder that does not exist."""
        vector_files.save(self.state, folder, NO_NOTE)

    def save_shard(
        self, content: index_files.Content, vectors: Vectors | None, folder: Path
    ) -> None:
        """Write a vector index."""
        index = Index._of(content, build="manual")
        vector_files.save(replace(self.state, index=index, vectors=vectors), folder, content.note)

    def load_shard(self, folder: Path, mmap: bool, verify: bool | None = None) -> Opened:
        """Open a vector index."""
        state = VectorIndex.load(folder, mmap, verify=verify)._fitted()
        return Opened(state.index, state.vectors)

    def verify_shard(self, folder: Path) -> Index:
        """Check a vector index."""
        index = VectorIndex.load(folder, mmap=True, verify=True)
        index.verify()
        return index.index


class EmbeddingsTemplate(Template):
    """Rows are embeddings, quantised and kept as `BinaryEmbeddings` does."""

    kind: Kind = "embeddings"
    bitorder: BitOrder = "big"
    metric: Metric = "inner_product"

    def __init__(self, state: EmbeddingsState) -> None:
        """Keep a state without rows."""
        self.state = state
        self.n_bits = state.index.n_bits
        self.takes_vectors = state.rescore is not None

    @property
    def empty_vectors(self) -> Vectors | None:
        """The vectors of a shard without rows."""
        if self.state.rescore is None:
            return None
        return no_vectors(self.state.rescore, self.state.scales, self.n_bits)

    def converted(
        self, values: NDArray[Any], ids: NDArray[Any] | None
    ) -> tuple[Codes, Ids | None, NDArray[Any] | None]:
        """What `BinaryEmbeddings.add` makes of the rows."""
        empty = replace(
            self.state, index=_without_rows(self.state.index), vectors=self.empty_vectors
        )
        return _converted(with_embeddings(empty, values, None, replacing=False), ids)

    def save(self, folder: Path) -> None:
        """Write the template to a folder that does not exist."""
        embedding_files.save(self.state, folder, NO_NOTE)

    def save_shard(
        self, content: index_files.Content, vectors: Vectors | None, folder: Path
    ) -> None:
        """Write a collection of embeddings."""
        index = Index._of(content, build="manual")
        embedding_files.save(
            replace(self.state, index=index, vectors=vectors), folder, content.note
        )

    def load_shard(self, folder: Path, mmap: bool, verify: bool | None = None) -> Opened:
        """Open a collection of embeddings."""
        state = BinaryEmbeddings.load(folder, mmap, verify=verify)._state
        return Opened(state.index, state.vectors)

    def verify_shard(self, folder: Path) -> Index:
        """Check a collection of embeddings."""
        embeddings = BinaryEmbeddings.load(folder, mmap=True, verify=True)
        embeddings.verify()
        return embeddings.index


VectorTemplate: TypeAlias = VectorsTemplate | EmbeddingsTemplate
"""A template that a version stores."""


def template_like(like: object) -> tuple[VectorTemplate, ShardOptions]:
    """The template of a caller's index, without its rows, and the options of its bands.

    Raises TypeError and ValueError for what cannot be a template.
    """
    if isinstance(like, VectorIndex):
        fitted = like._fitted()
        template = VectorsTemplate(replace(fitted, index=_without_rows(fitted.index)))
        template.state = replace(template.state, vectors=template.empty_vectors)
        return template, _options_of(fitted.index)
    if isinstance(like, BinaryEmbeddings):
        state = like._state
        if state.rescore == "int8" and state.scales is None:
            raise ValueError(
                "like keeps int8 without ranges, which all shards must share: create it with "
                "calibration="
            )
        empty = EmbeddingsTemplate(replace(state, index=_without_rows(state.index)))
        empty.state = replace(empty.state, vectors=empty.empty_vectors)
        return empty, _options_of(state.index)
    raise TypeError(f"like must be a VectorIndex or BinaryEmbeddings, got {type(like).__name__}")


def loaded_template(kind: Kind, folder: Path) -> VectorTemplate:
    """The template in a folder."""
    if kind == "vectors":
        return VectorsTemplate(vector_files.load(folder, False, True, "manual")[0])
    return EmbeddingsTemplate(embedding_files.load(folder, False, True, "manual")[0])


def _options_of(index: Index) -> ShardOptions:
    """The options of an index as those of shards; lean rows cannot have vectors."""
    options = index._policy.band_options
    return ShardOptions(options.bands, options.band_bits, options.memory_limit, "plain")


def _without_rows(index: Index) -> Index:
    """An empty index of the same codes, with default options and no note."""
    return Index(index.n_bits, bitorder=index.bitorder, build="manual")


def _converted(
    state: VectorState | EmbeddingsState, ids: NDArray[Any] | None
) -> tuple[Codes, Ids | None, NDArray[Any] | None]:
    """The rows of a state whose ids were counted from 0."""
    rows = state.index.ids
    given = None if ids is None else as_row_ids(ids, len(rows))
    vectors = None if state.vectors is None else state.vectors.of(rows)
    return state.index.codes_of(rows), given, vectors
