"""The documents to search: Debian's packages, the shipped texts, or a file of the user's.

Invariant: no two documents of a collection have the same text, and their order is shuffled by a
fixed seed, so that the first few thousand are a fair sample of all.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bitweigh_experiments.demo import debian, samples
from bitweigh_experiments.demo.document import Document

__all__ = ["Documents", "choose", "debian_packages", "shipped", "texts_of"]

# Fewer packages are not worth searching: a slim image, or package lists were never fetched.
MIN_PACKAGES = 3000
SEED = 0


class Documents(NamedTuple):
    """Documents with their source and sample queries."""

    kind: str
    """A word, part of the name of the cached file."""
    source: str
    """A description to print."""
    documents: tuple[Document, ...]
    queries: tuple[str, ...]
    """Sample queries."""


def choose(
    texts: Path | None = None, *, fetch_into: Path | None = None, python: bool = False
) -> Documents:
    """Choose the documents to search: a file's, else Debian's if enough, else the shipped ones.

    Parameters
    ----------
    texts : path, optional
        A file with one document per line.
    fetch_into : path, optional
        A folder to fetch Debian's lists with the long descriptions into.
    python : bool, optional
        Whether to choose the shipped ones, which are about Python, in any case.

    """
    if python:
        return shipped()
    if texts is not None:
        return texts_of(texts)
    if fetch_into is not None:
        packages = debian.fetched(fetch_into)
        if len(packages) < MIN_PACKAGES:
            raise ValueError(
                f"expected at least {MIN_PACKAGES} packages from apt, got {len(packages)}"
            )
        return debian_packages(
            packages, "fetched", "descriptions of Debian packages, the long ones"
        )
    packages = debian.available()
    if len(packages) < MIN_PACKAGES:
        return shipped()
    return debian_packages(packages, "debian", "one-line descriptions of Debian packages")


def debian_packages(packages: Iterable[Document], kind: str, source: str) -> Documents:
    """Return packages as documents."""
    return Documents(kind, source, _distinct(packages), samples.DEBIAN)


def shipped() -> Documents:
    """Return the documents shipped in this package: summaries from Python's standard library."""
    text = (resources.files("bitweigh_experiments.demo") / "texts" / "python.txt").read_text(
        encoding="utf-8"
    )
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    distinct = _distinct(Document(name, summary) for name, summary in lines)
    source = "summaries of Python's standard library, shipped with bitweigh"
    return Documents("python", source, distinct, samples.PYTHON)


def texts_of(file: Path) -> Documents:
    """Read one document per line of a UTF-8 file; the first few are the sample queries."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file}: expected UTF-8 text, got an invalid byte at offset {error.start}"
        ) from None
    distinct = _distinct(Document("", " ".join(line.split())) for line in lines)
    if not distinct:
        raise ValueError(f"{file}: expected one document per line, got no line with text")
    queries = tuple(document.text for document in distinct[: samples.N_SAMPLES])
    return Documents("texts", f"lines of {file.name}", distinct, queries)


def _distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Drop documents without text and repeated texts, and shuffle the rest."""
    first: dict[str, Document] = {}
    for document in documents:
        if document.text:
            first.setdefault(document.text, document)
    distinct = list(first.values())
    order = np.random.default_rng(SEED).permutation(len(distinct))
    return tuple(distinct[number] for number in order)
