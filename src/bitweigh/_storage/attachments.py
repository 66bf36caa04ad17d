"""The files of a vector index besides its codes: hasher, weigher, and vectors if it keeps them."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np

from bitweigh import hashers, weighers
from bitweigh._disk.reading import open_plain, pieces
from bitweigh._storage.arrays import (
    DAMAGED,
    VECTOR_KINDS,
    Array,
    ArrayData,
    ArrayFile,
    array_data,
    check_file,
    digest_of,
    digest_of_pieces,
    load_array,
    map_array,
)
from bitweigh._storage.index_files import Content
from bitweigh._storage.manifest import Fields, OtherFile
from bitweigh.errors import CorruptFileError
from bitweigh.hashers import _files as estimator_files
from bitweigh.hashers._base import Hasher
from bitweigh.hashers._estimator import Estimator
from bitweigh.typing import Ids, Metric, VectorDtype
from bitweigh.weighers._base import Weigher

__all__ = [
    "Attachments",
    "EstimatorData",
    "VectorContent",
    "VectorSource",
    "check_attachments",
    "described",
    "read_attachments",
    "read_fields",
    "read_vectors",
]

Kind = TypeVar("Kind", bound=Estimator)

MAX_FEATURES = 2**31
MAX_ROWS = 2**62
MAX_SEED = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class VectorContent:
    """The data of a vector index."""

    codes: Content
    hasher: Hasher
    weigher: Weigher
    metric: Metric
    rerank: VectorDtype | None
    seed: int
    ids: Ids | None = None
    """The ids of the vectors, ascending; None if no vectors are kept."""
    vectors: Iterable[Array] | None = None
    """Blocks of the vectors in the order of `ids`, a single one if loaded; iterable repeatedly."""


@dataclass(frozen=True, slots=True)
class Attachments:
    """The description, in a manifest, of a vector index besides its codes."""

    metric: Metric
    rerank: VectorDtype | None
    seed: int
    n_features: int
    rows: int
    hasher: OtherFile
    weigher: OtherFile
    vectors: ArrayFile | None
    """None if no vectors are kept or the index is empty."""
    vector_ids: ArrayFile | None
    """None if `vectors` is None."""


class VectorSource(NamedTuple):
    """The files that a vector index was loaded from."""

    folder: Path
    checksum: str
    """The checksum of the manifest."""
    vectors: Path | None
    """The file of the vectors, if there are any."""


@dataclass(frozen=True, slots=True, eq=False)
class EstimatorData:
    """The file for a hasher or weigher."""

    file: OtherFile
    raw: bytes

    def data(self) -> Iterable[memoryview]:
        """All bytes of the file."""
        return [memoryview(self.raw)]


def described(
    content: VectorContent,
) -> tuple[dict[str, Any], dict[str, ArrayData | EstimatorData]]:
    """The fields of `attachments` in the manifest, and the data of their files by name."""
    rows, n_features = content.codes.state.rows, content.hasher.n_features_in_
    named: dict[str, ArrayData | EstimatorData] = {
        "hasher": _estimator_data("hasher", content.hasher),
        "weigher": _estimator_data("weigher", content.weigher),
    }
    if content.rerank is not None and content.vectors is not None and rows:
        assert content.ids is not None
        dtypes = {"vectors": np.dtype(content.rerank), "vector_ids": content.ids.dtype}
        arrays = {"vectors": content.vectors, "vector_ids": [content.ids]}
        lengths = {"vectors": rows, "features": n_features}
        for kind in VECTOR_KINDS:
            named[kind.name] = array_data(kind, dtypes[kind.name], arrays[kind.name], lengths)
    fields: dict[str, Any] = {
        "metric": content.metric,
        "rerank": content.rerank,
        "seed": content.seed,
        "n_features": n_features,
        "rows": rows,
    }
    for kind_name in ("hasher", "weigher", "vectors", "vector_ids"):
        fields[kind_name] = named[kind_name].file.name if kind_name in named else None
    return fields, {stored.file.name: stored for stored in named.values()}


def _estimator_data(kind: str, estimator: Estimator) -> EstimatorData:
    raw = estimator_files.to_bytes(estimator)
    return EstimatorData(OtherFile(f"{kind}-{digest_of(raw)}.npz", len(raw)), raw)


def read_fields(fields: Fields, n_bits: int) -> Attachments:
    """Read the fields of `attachments` in a manifest."""
    rerank: VectorDtype | None = fields.choice("rerank", (None, "float16", "float32"))
    n_features = fields.integer("n_features", 1, MAX_FEATURES)
    rows = fields.integer("rows", 0, MAX_ROWS)
    max_bytes = estimator_files.most_bytes_for(n_features, n_bits)
    lengths = {"vectors": 0 if rerank is None else rows, "features": n_features}
    vectors, vector_ids = (fields.array(kind, lengths) for kind in VECTOR_KINDS)
    if vectors is not None and vectors.dtype != np.dtype(rerank).newbyteorder("<").str:
        fields.fail_at("rerank", f"must be the dtype of {vectors.name}")
    return Attachments(
        fields.choice("metric", get_args(Metric)),
        rerank,
        fields.integer("seed", 0, MAX_SEED),
        n_features,
        rows,
        fields.other_file("hasher", max_bytes),
        fields.other_file("weigher", max_bytes),
        vectors,
        vector_ids,
    )


def read_attachments(
    folder: Path,
    described_in: Path,
    stored: Attachments,
    codes: Content,
    mapped: bool,
    verify: bool,
) -> VectorContent:
    """The vector index with these codes; `described_in` is the file that describes the folder.

    `verify` checks the arrays against their checksums; hasher and weigher always are.

    Raises CorruptFileError if a file is damaged, or if they do not fit each other.
    """
    hasher = _read_estimator(folder, stored.hasher, tuple(hashers.BY_NAME.values()))
    weigher = _read_estimator(folder, stored.weigher, tuple(weighers.BY_NAME.values()))
    found = (hasher.n_features_in_, hasher.n_bits_, weigher.n_bits_, hasher.bitorder)
    expected = (stored.n_features, codes.n_bits, codes.n_bits, codes.bitorder)
    if found != expected or stored.rows != codes.state.rows:
        raise CorruptFileError(described_in, "its hasher, weigher and codes do not fit each other")
    content = VectorContent(codes, hasher, weigher, stored.metric, stored.rerank, stored.seed)
    if stored.vectors is None or stored.vector_ids is None:
        return content
    ids, vectors = read_vectors(folder, stored.vectors, stored.vector_ids, codes, mapped, verify)
    return VectorContent(
        codes, hasher, weigher, stored.metric, stored.rerank, stored.seed, ids, [vectors]
    )


def read_vectors(
    folder: Path,
    vectors: ArrayFile,
    vector_ids: ArrayFile,
    codes: Content,
    mapped: bool,
    verify: bool,
) -> tuple[Ids, Array]:
    """The ids of kept vectors, and the vectors, which are mapped in any case."""
    ids = load_array(folder, vector_ids, mapped, verify)
    if not mapped and not np.array_equal(ids, codes.state.ids()):
        path = folder / vector_ids.name
        raise CorruptFileError(path, "these are not the ids of the index")
    if verify:
        check_file(folder, vectors)
    return ids, map_array(folder, vectors)


def check_attachments(folder: Path, stored: Attachments) -> None:
    """Raise CorruptFileError for the first file that has changed since it was written."""
    for estimator in (stored.hasher, stored.weigher):
        with open_plain(folder / estimator.name) as file:
            _check_digest(file, folder / estimator.name, estimator)
    for array in (stored.vectors, stored.vector_ids):
        if array is not None:
            check_file(folder, array)


def _read_estimator(folder: Path, stored: OtherFile, kinds: tuple[type[Kind], ...]) -> Kind:
    """The hasher or weigher in a file whose content matches the checksum in its name."""
    path = folder / stored.name
    with open_plain(path) as file:
        _check_digest(file, path, stored)
        return estimator_files.read_from(file, path, kinds)


def _check_digest(file: io.FileIO, path: Path, stored: OtherFile) -> None:
    size = os.fstat(file.fileno()).st_size
    if size != stored.size:
        raise CorruptFileError(path, f"must have {stored.size} bytes, has {size}")
    if digest_of_pieces(pieces(file, size, path)) != stored.checksum:
        raise CorruptFileError(path, DAMAGED)
