"""The data of embeddings that are rescored, converted between memory and the files of its folder.

The folder is that of an index of the bits, with the kept vectors. Its manifest has the fields of an
index, one more object, `attachments`, and a different `format`, so that a version of bitweigh that
knows only plain indexes refuses the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitweigh._disk.reading import resolved
from bitweigh._storage import folder as folders
from bitweigh._storage import index_files
from bitweigh._storage.arrays import (
    SCALE_KIND,
    VECTOR_KINDS,
    Array,
    ArrayData,
    ArrayFile,
    array_data,
    check_file,
    read_array,
)
from bitweigh._storage.attachments import MAX_ROWS, read_vectors
from bitweigh._storage.formats import EMBEDDINGS
from bitweigh._storage.index_files import Content, Source
from bitweigh._storage.manifest import Fields, Manifest, read_manifest, sealed
from bitweigh.errors import CorruptFileError
from bitweigh.typing import Ids, RescoreDtype

__all__ = ["EmbeddingContent", "check_files", "load", "save"]


@dataclass(frozen=True, slots=True, eq=False)
class EmbeddingContent:
    """The data of embeddings with kept vectors."""

    codes: Content
    rescore: RescoreDtype
    scales: NDArray[np.float64] | None
    ids: Ids | None = None
    """The ids of the vectors, ascending; None if there are none."""
    vectors: Iterable[Array] | None = None
    """Blocks of the vectors in the order of `ids`, a single one if loaded; iterable repeatedly."""


class _Attached(NamedTuple):
    """The description, in a manifest, of what there is besides the codes."""

    rescore: RescoreDtype
    rows: int
    scales: ArrayFile | None
    vectors: ArrayFile | None
    vector_ids: ArrayFile | None


def save(content: EmbeddingContent, path: str | os.PathLike[str]) -> None:
    """Make the folder hold these embeddings, or leave it as it was."""
    fields, arrays = index_files.described(content.codes)
    attached, more = _described(content)
    files = {**arrays, **more}
    fields["attachments"] = attached
    fields["files"] = {name: files[name].file.facts() for name in sorted(files)}
    manifest = sealed(fields, EMBEDDINGS)
    index_files.refuse_too_many_parts(fields, manifest)
    folders.save(path, EMBEDDINGS, manifest, files)


def load(
    path: str | os.PathLike[str], mapped: bool, verify: bool
) -> tuple[EmbeddingContent, Source, Path | None]:
    """The embeddings in a folder, its source, and the file of the vectors, if there are any.

    Raises CorruptFileError if the folder is damaged.
    """
    return folders.load(path, EMBEDDINGS, partial(_read, mapped=mapped, verify=verify))


def check_files(path: str | os.PathLike[str]) -> None:
    """Check the files of scales and vectors in a folder against their checksums."""
    folder = resolved(path)
    attached = _read_fields(read_manifest(folder))
    for array in (attached.scales, attached.vectors, attached.vector_ids):
        if array is not None:
            check_file(folder, array)


def _described(content: EmbeddingContent) -> tuple[dict[str, Any], dict[str, ArrayData]]:
    """The fields of `attachments` in the manifest, and the arrays by the names of their files."""
    rows, dim = content.codes.state.rows, content.codes.n_bits
    lengths = {"vectors": rows, "features": dim}
    named: dict[str, ArrayData] = {}
    if content.scales is not None:
        named["scales"] = array_data(SCALE_KIND, content.scales.dtype, [content.scales], lengths)
    if content.vectors is not None and content.ids is not None and rows:
        dtypes = {
            "vectors": _vector_dtype(content.rescore, content.scales),
            "vector_ids": content.ids.dtype,
        }
        arrays = {"vectors": content.vectors, "vector_ids": [content.ids]}
        for kind in VECTOR_KINDS:
            named[kind.name] = array_data(kind, dtypes[kind.name], arrays[kind.name], lengths)
    fields: dict[str, Any] = {"rescore": content.rescore, "rows": rows}
    for kind_name in ("scales", "vectors", "vector_ids"):
        fields[kind_name] = named[kind_name].file.name if kind_name in named else None
    return fields, {stored.file.name: stored for stored in named.values()}


def _read(
    folder: Path, manifest: Manifest, mapped: bool, verify: bool
) -> tuple[EmbeddingContent, Source, Path | None]:
    attached = _read_fields(manifest)
    codes = index_files.read_content(folder, index_files.stored_index(manifest), mapped, verify)
    if attached.rows != codes.state.rows:
        raise CorruptFileError(manifest.path, "its vectors and codes do not fit each other")
    source = Source(
        folder.resolve(), manifest.checksum, codes.state if mapped else None, codes.note
    )
    scales = None if attached.scales is None else _read_scales(folder, attached.scales)
    if attached.vectors is None or attached.vector_ids is None:
        return EmbeddingContent(codes, attached.rescore, scales), source, None
    ids, vectors = read_vectors(
        folder, attached.vectors, attached.vector_ids, codes, mapped, verify
    )
    content = EmbeddingContent(codes, attached.rescore, scales, ids, [vectors])
    return content, source, folder / attached.vectors.name


def _read_scales(folder: Path, stored: ArrayFile) -> NDArray[np.float64]:
    """The scales, always checked: they are few, and every score depends on them."""
    scales: NDArray[np.float64] = read_array(folder, stored, verify=True)
    if not ((scales > 0) & np.isfinite(scales)).all():
        raise CorruptFileError(folder / stored.name, "must hold positive numbers")
    return scales


def _vector_dtype(rescore: RescoreDtype, scales: object | None) -> np.dtype[Any]:
    """The dtype of the vectors in their file: with "int8" float32 while there are no scales."""
    return np.dtype("float32" if rescore == "int8" and scales is None else rescore)


def _read_fields(manifest: Manifest) -> _Attached:
    index = index_files.stored_index(manifest)
    fields: Fields = manifest.fields().object("attachments")
    if index.bitorder != "big":
        fields.fail("bitorder must be 'big': bits are in the order of the dimensions")
    rescore: RescoreDtype = fields.choice("rescore", ("int8", "float16", "float32"))
    rows = fields.integer("rows", 0, MAX_ROWS)
    lengths = {"vectors": rows, "features": index.n_bits}
    scales = fields.array(SCALE_KIND, lengths)
    if rescore != "int8" and scales is not None:
        fields.fail_at("scales", "must be null unless rescore is 'int8'")
    vectors, vector_ids = (fields.array(kind, lengths) for kind in VECTOR_KINDS)
    expected = _vector_dtype(rescore, scales)
    if vectors is not None and vectors.dtype != expected.newbyteorder("<").str:
        fields.fail_at("vectors", f"must be the name of a file of {expected.name}")
    return _Attached(rescore, rows, scales, vectors, vector_ids)
