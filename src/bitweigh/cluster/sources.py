"""The rows that a caller means by an array, paths or URLs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bitweigh._checks import as_ids
from bitweigh._streaming.sources import ArraySource, FileSource, RowSource, as_source, files_at
from bitweigh.cluster.stores import is_url
from bitweigh.cluster.templates import Template
from bitweigh.cluster.url_sources import UrlSource

__all__ = ["PathLike", "rows_from"]

PathLike: TypeAlias = str | os.PathLike[str]


def rows_from(
    source: Any,  # noqa: ANN401
    codes: str | None,
    ids: Any,  # noqa: ANN401
    vectors: str | None = None,
    template: Template | None = None,
) -> RowSource:
    """The rows that a caller means, readable in any order: vectors if the template takes those."""
    takes_vectors = template is not None and template.takes_vectors
    if (codes if takes_vectors else vectors) is not None:
        wrong, right = ("codes", "vectors") if takes_vectors else ("vectors", "codes")
        raise ValueError(f"{wrong}= is for shards of {wrong}, these are of {right}: give {right}=")
    column = vectors if takes_vectors else codes
    paths = _paths(source)
    if paths is None:
        if column is not None:
            raise ValueError("codes= and vectors= are columns of parquet files")
        return ArraySource([np.asarray(source)], [] if ids is None else [as_ids(ids)])
    if any(is_url(path) for path in paths):
        return _at_urls(paths, column, ids, takes_vectors)
    first = files_at(Path(paths[0]))[0] if len(paths) == 1 else Path(paths[0])
    id_column = ids if first.suffix.lower() == ".parquet" else None
    files = as_source(
        source,
        ids=None if id_column else ids,
        column=column,
        id_column=id_column,
        vectors=takes_vectors,
    )
    assert isinstance(files, FileSource)
    return files


def _paths(source: Any) -> Sequence[PathLike] | None:  # noqa: ANN401
    if isinstance(source, str | os.PathLike):
        return [source]
    is_list = isinstance(source, list | tuple) and len(source) > 0
    return source if is_list and all(isinstance(p, str | os.PathLike) for p in source) else None


def _at_urls(
    urls: Sequence[PathLike],
    column: str | None,
    ids: Any,  # noqa: ANN401
    vectors: bool,
) -> RowSource:
    if not all(is_url(url) for url in urls):
        raise ValueError("a source is files of this machine or URLs, not both")
    if ids is not None and not isinstance(ids, str):
        raise ValueError("ids of files at URLs are in a column: give its name")
    return UrlSource([os.fspath(url) for url in urls], column, ids, vectors=vectors)
