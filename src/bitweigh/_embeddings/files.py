"""Saving and loading: the state to and from the contents that `bitweigh._storage` handles.

Embeddings without kept vectors are a plain index on disk.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from bitweigh import _storage
from bitweigh._embeddings.state import EmbeddingsState, no_vectors
from bitweigh._storage import Source, embedding_files
from bitweigh._storage.embedding_files import EmbeddingContent
from bitweigh._vectors.files import Blocks
from bitweigh._vectors.store import Vectors
from bitweigh.errors import CorruptFileError
from bitweigh.index import Index
from bitweigh.typing import BuildMode

__all__ = ["check_files", "load", "save"]


def save(state: EmbeddingsState, path: str | os.PathLike[str], note: str) -> None:
    """Replace the contents of the folder, atomically."""
    codes = replace(state.index._content(), note=note)
    if state.rescore is None or state.vectors is None:
        _storage.save(codes, path)
        return
    ids = state.index.ids
    vectors = Blocks(state.vectors, ids)
    embedding_files.save(EmbeddingContent(codes, state.rescore, state.scales, ids, vectors), path)


def load(
    path: str | os.PathLike[str], mapped: bool, verify: bool, build: BuildMode
) -> tuple[EmbeddingsState, Source]:
    """Load the state from a folder, with kept vectors or without.

    Raises CorruptFileError if the folder is damaged, and ValueError for codes of another bit order.
    """
    if _storage.folder_kind(path) != "index":  # for another kind this raises
        content, source, vectors_path = embedding_files.load(path, mapped, verify)
        index = Index._of(content.codes, source, build)
        vectors = _vectors_of(content, vectors_path, mapped)
        calibrated = content.scales is not None
        return EmbeddingsState(index, content.rescore, vectors, content.scales, calibrated), source
    codes, source = _storage.load(path, mapped, verify)
    if codes.bitorder != "big":
        raise ValueError(
            f"{os.fspath(path)} has an index with bitorder={codes.bitorder!r}, but embeddings "
            "are packed with bitorder='big'; open it with bitweigh.Index.load"
        )
    return EmbeddingsState(Index._of(codes, source, build)), source


def check_files(folder: Path) -> None:
    """Check the files of scales and vectors against their checksums."""
    embedding_files.check_files(folder)


def _vectors_of(content: EmbeddingContent, path: Path | None, mapped: bool) -> Vectors:
    if content.vectors is None or content.ids is None:
        return no_vectors(content.rescore, content.scales, content.codes.n_bits)
    (stored,) = content.vectors
    vectors = Vectors.of_arrays(content.ids, stored)
    if mapped:
        return vectors
    try:
        return vectors.only(content.ids)
    except ValueError:  # not finite, as for embeddings that a caller adds
        raise CorruptFileError(str(path), "must hold finite numbers") from None
