"""Saving and loading: a `VectorState` to and from the contents that `bitweigh._storage` handles."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bitweigh._storage import Source, vector_files
from bitweigh._storage.arrays import Array
from bitweigh._storage.vector_files import VectorContent, VectorSource
from bitweigh._vectors.bit_weights import know_bits
from bitweigh._vectors.state import VectorState
from bitweigh._vectors.store import Vectors, blocks_of
from bitweigh.errors import CorruptFileError
from bitweigh.index import Index
from bitweigh.typing import BuildMode, Ids

__all__ = ["Blocks", "check_files", "is_still_there", "load", "save"]


class Blocks:
    """The vectors of some ids in blocks; can be iterated over repeatedly."""

    def __init__(self, vectors: Vectors, ids: Ids) -> None:
        self._vectors = vectors
        self._ids = ids

    def __iter__(self) -> Iterator[Array]:
        return blocks_of(self._vectors, self._ids)


def save(state: VectorState, path: str | os.PathLike[str], note: str) -> None:
    """Replace the contents of the folder, atomically."""
    ids = blocks = None
    if state.vectors is not None:
        ids = state.index.ids
        blocks = Blocks(state.vectors, ids)
    settings = (state.hasher, state.weigher, state.metric, state.rerank, state.seed)
    codes = replace(state.index._content(), note=note)
    vector_files.save(VectorContent(codes, *settings, ids, blocks), path)


def load(
    path: str | os.PathLike[str], mapped: bool, verify: bool, build: BuildMode
) -> tuple[VectorState, Source]:
    """Load the state from a folder; CorruptFileError if the folder is damaged."""
    content, vector_source = vector_files.load(path, mapped, verify)
    source = Source(
        vector_source.folder.resolve(),
        vector_source.checksum,
        content.codes.state if mapped else None,
        content.codes.note,
    )
    index = Index._of(content.codes, source, build)
    know_bits(index, content.hasher, content.weigher)
    state = VectorState(
        index,
        content.hasher,
        content.weigher,
        _vectors_of(content, vector_source, mapped),
        content.metric,
        content.rerank,
        content.seed,
    )
    return state, source


def is_still_there(source: Source) -> bool:
    """Whether a folder still holds the same index: its manifest has the checksums of its files."""
    try:
        return vector_files.checksum_of(source.folder) == source.checksum
    except (OSError, CorruptFileError):
        return False


def check_files(folder: Path) -> None:
    """Check the files of hasher, weigher and vectors against their checksums."""
    vector_files.check_files(folder)


def _vectors_of(content: VectorContent, source: VectorSource, mapped: bool) -> Vectors | None:
    if content.rerank is None:
        return None
    if content.vectors is None or content.ids is None:
        return Vectors.empty(content.rerank, content.hasher.n_features_in_)
    (stored,) = content.vectors
    vectors = Vectors.of_arrays(content.ids, stored)
    if mapped:
        return vectors
    try:
        return vectors.only(content.ids)
    except ValueError:  # not finite, as for vectors that a caller adds
        raise CorruptFileError(str(source.vectors), "must hold finite numbers") from None
