"""The documents that are searched: Debian's packages, the shipped texts, or a file of one's own.

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

# Fewer packages than this are no archive worth searching: a slim image, or lists never fetched.
FEWEST_PACKAGES = 3000
SEED = 0


class Documents(NamedTuple):
    """Documents, what they are, and what to ask them."""

    kind: str
    """A word, part of the name of the cached file."""
    source: str
    """What they are, for people."""
    documents: tuple[Document, ...]
    queries: tuple[str, ...]
    """Sample queries."""


def choose(texts: Path | None = None, *, fetch_into: Path | None = None) -> Documents:
    """The documents to search: a file's, else Debian's if there are enough, else the shipped.

    Parameters
    ----------
    texts : path, optional
        A file with one document per line.
    fetch_into : path, optional
        A folder to fetch Debian's lists with the long descriptions into.

    """
    if texts is not None:
        return texts_of(texts)
    if fetch_into is not None:
        packages = debian.fetched(fetch_into)
        if len(packages) < FEWEST_PACKAGES:
            raise ValueError(
                f"expected at least {FEWEST_PACKAGES} packages from apt, got {len(packages)}"
            )
        return debian_packages(
            packages, "fetched", "descriptions of Debian packages, the long ones"
        )
    packages = debian.available()
    if len(packages) < FEWEST_PACKAGES:
        return shipped()
    return debian_packages(packages, "debian", "one-line descriptions of Debian packages")


def debian_packages(packages: Iterable[Document], kind: str, source: str) -> Documents:
    """Packages as documents."""
    return Documents(kind, source, _distinct(packages), samples.DEBIAN)


def shipped() -> Documents:
    """The documents inside the package: summaries from Python's standard library."""
    text = (resources.files("bitweigh_experiments.demo") / "texts" / "python.txt").read_text(
        encoding="utf-8"
    )
    lines = [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]
    distinct = _distinct(Document(name, summary) for name, summary in lines)
    source = "summaries of Python's standard library, shipped with bitweigh"
    return Documents("python", source, distinct, samples.PYTHON)


def texts_of(file: Path) -> Documents:
    """One document per line of a UTF-8 file; the sample queries are some of them."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{file}: expected UTF-8 text, got another byte at {error.start}"
        ) from None
    distinct = _distinct(Document("", " ".join(line.split())) for line in lines)
    if not distinct:
        raise ValueError(f"{file}: expected one document per line, got no line with text")
    queries = tuple(document.text for document in distinct[: samples.N_SAMPLES])
    return Documents("texts", f"lines of {file.name}", distinct, queries)


def _distinct(documents: Iterable[Document]) -> tuple[Document, ...]:
    """Those with a text, the first of each text, shuffled."""
    first: dict[str, Document] = {}
    for document in documents:
        if document.text:
            first.setdefault(document.text, document)
    kept = list(first.values())
    order = np.random.default_rng(SEED).permutation(len(kept))
    return tuple(kept[place] for place in order)
