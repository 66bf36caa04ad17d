"""The steps of the demo: documents, embeddings, queries, answers, summary."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bitweigh_experiments.demo import cache, tables
from bitweigh_experiments.demo.collection import Collection, as_unit
from bitweigh_experiments.demo.compare import compare, summarise
from bitweigh_experiments.demo.documents import Documents, choose
from bitweigh_experiments.demo.model import Model, load_model

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Settings", "demonstrate", "run"]

# Seconds to wait for embeddings before answering from the documents embedded so far.
PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Settings:
    """The options of the demo."""

    queries: tuple[str, ...] = ()
    """If empty, queries are typed in, or samples are used without a terminal."""
    n_bits: int = 128
    k: int = 10
    texts: Path | None = None
    """A file with one document per line."""
    fetch: bool = False
    """Whether to fetch Debian's long descriptions."""
    plain: bool = False
    """Whether to print without colours and lines."""
    python: bool = False
    """Whether to search the shipped texts about Python, even where there are Debian's."""

    def documents(self, kept: Path) -> Documents:
        """The documents to search; what is fetched goes into a folder in `kept`."""
        lists = kept / "lists" if self.fetch else None
        return choose(self.texts, fetch_into=lists, python=self.python)


def run(settings: Settings) -> int:
    """Run the demo; return the exit status.

    ImportError, OSError and ValueError say what is missing or wrong.
    """
    console = tables.console_for(settings.plain)
    model = load_model()
    return demonstrate(settings, console, model, interactive=sys.stdin.isatty())


def demonstrate(
    settings: Settings,
    console: Console,
    model: Model,
    *,
    interactive: bool,
    cache_folder: Path | None = None,
) -> int:
    """Run the demo with a model; return 1 if an answer was not exact, else 0.

    `interactive` says that queries can be typed in. Files are kept in `cache_folder`, by default
    `cache.folder()`.
    """
    if not all(query.strip() for query in settings.queries):
        raise ValueError("expected words to look for, got an empty query")
    cache_folder = cache_folder or cache.folder()
    ask = interactive and not settings.queries
    with console.status("reading the documents"):
        documents = settings.documents(cache_folder)
        collection = _collect(documents, settings, model, cache_folder)
    try:
        collection.start()
        console.print(f"{tables.counted(len(collection))}: {documents.source}", soft_wrap=True)
        console.print(f"Embedded by {model.name}. {tables.MARK}: found by float cosine too.")
        if ask:
            queries: Iterable[str] = _typed_queries(console, collection)
        else:
            queries = settings.queries or documents.queries
            _wait(console, collection, PATIENCE)
        answered = _answer(queries, settings, console, model, collection, documents)
        if not answered:
            return 0
        _wait(console, collection, PATIENCE if ask else None)
        collection.stop()
        vectors = as_unit(model.embed(answered))
        summary = summarise(collection, answered, vectors, settings.n_bits, settings.k)
        tables.show_summary(console, summary, plain=settings.plain)
        return 0 if summary.exact else 1
    finally:
        collection.stop()


def _collect(
    documents: Documents, settings: Settings, model: Model, cache_folder: Path
) -> Collection:
    """Return the documents' vectors: cached ones, or new ones that will be cached."""
    texts = [document.embedded for document in documents.documents]
    check = cache.checksum(model.name, texts)
    cached = cache.load(cache_folder, documents.kind, check, len(texts))
    store = partial(cache.save, cache_folder, documents.kind, check)
    return Collection(texts, model.embed, settings.n_bits, cached=cached, store=store)


def _answer(
    queries: Iterable[str],
    settings: Settings,
    console: Console,
    model: Model,
    collection: Collection,
    documents: Documents,
) -> list[str]:
    """Answer queries as they come; return the answered ones."""
    answered = []
    for query in queries:
        vector = as_unit(model.embed([query]))[0]
        answer = compare(collection, query, vector, settings.n_bits, settings.k)
        tables.show_answer(console, answer, documents.documents, plain=settings.plain)
        answered.append(query)
    return answered


def _typed_queries(console: Console, collection: Collection) -> Iterator[str]:
    """Yield queries typed in, until an empty line, the end of the input or Ctrl-C."""
    with suppress(ImportError):
        import readline  # noqa: F401 lets `input` edit and recall lines
    console.print("Type what you are looking for, in plain English; an empty line ends the demo.")
    while True:
        if not collection.wait(0):
            console.print(f"{tables.counted(collection.n_ready)} so far; the rest will follow.")
        try:
            query = input("search> ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if not query:
            return
        yield query


def _wait(console: Console, collection: Collection, seconds: float | None) -> None:
    """Wait until all documents are embedded, at most `seconds`, and show progress."""
    if collection.wait(0):
        return
    end = None if seconds is None else time.monotonic() + seconds
    with console.status("embedding") as status:
        while not collection.wait(0.2) and (end is None or time.monotonic() < end):
            status.update(f"embedding, {collection.n_ready:,} of {len(collection):,}")
