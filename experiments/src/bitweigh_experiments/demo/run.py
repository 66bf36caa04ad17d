"""The course of the demo: documents, embeddings, queries, answers, summary."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
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

# Seconds after which those who wait are answered with the documents embedded so far.
PATIENCE = 20.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What was asked for."""

    queries: tuple[str, ...] = ()
    """None: those that are typed, or sample queries where nobody can type."""
    n_bits: int = 128
    k: int = 10
    texts: Path | None = None
    """A file with one document per line."""
    fetch: bool = False
    """Whether to fetch Debian's long descriptions."""
    plain: bool = False
    """Whether to print without colours and lines."""


def run(settings: Settings) -> int:
    """Run the demo; the exit status. ImportError, OSError, ValueError say what cannot be done."""
    console = tables.console_for(settings.plain)
    model = load_model()
    with _one_blas_thread():
        return demonstrate(settings, console, model, interactive=sys.stdin.isatty())


def demonstrate(
    settings: Settings,
    console: Console,
    model: Model,
    *,
    interactive: bool,
    place: Path | None = None,
) -> int:
    """Run the demo with a model; 1 if an answer was not exact.

    `interactive`: somebody can type queries. `place` is where files are kept, by default the user's
    cache folder.
    """
    if not all(query.strip() for query in settings.queries):
        raise ValueError("expected words to look for, got an empty query")
    place = place or cache.folder()
    typed = interactive and not settings.queries
    with console.status("reading the documents"):
        documents = choose(settings.texts, fetch_into=place / "lists" if settings.fetch else None)
        collection = _collect(documents, settings, model, place)
    try:
        collection.start()
        console.print(f"{tables.counted(len(collection))}: {documents.source}", soft_wrap=True)
        console.print(f"Embedded by {model.name}. {tables.MARK}: found by float cosine, too.")
        if typed:
            queries: Iterable[str] = _typed(console, collection)
        else:
            queries = settings.queries or documents.queries
            _wait(console, collection, PATIENCE)
        asked = _answer(queries, settings, console, model, collection, documents)
        if not asked:
            return 0
        _wait(console, collection, PATIENCE if typed else None)
        collection.stop()
        vectors = as_unit(model.embed(asked))
        summary = summarise(collection, asked, vectors, settings.n_bits, settings.k)
        tables.show_summary(console, summary, plain=settings.plain)
        return 0 if summary.exact else 1
    finally:
        collection.stop()


def _one_blas_thread() -> AbstractContextManager[object]:
    """Keep BLAS to one thread, if threadpoolctl is there.

    ITQ's matrices are small: where other programs run, threads that wait for each other take six
    times as long.
    """
    try:
        limits: AbstractContextManager[object] = importlib.import_module(
            "threadpoolctl"
        ).threadpool_limits(1)
    except ModuleNotFoundError:
        return nullcontext()
    return limits


def _collect(documents: Documents, settings: Settings, model: Model, place: Path) -> Collection:
    """The documents' vectors: kept ones, or new ones that will be kept."""
    texts = [document.embedded for document in documents.documents]
    check = cache.checksum(model.name, texts)
    kept = cache.load(place, documents.kind, check, len(texts))
    keep = partial(cache.save, place, documents.kind, check)
    return Collection(texts, model.embed, settings.n_bits, kept=kept, keep=keep)


def _answer(
    queries: Iterable[str],
    settings: Settings,
    console: Console,
    model: Model,
    collection: Collection,
    documents: Documents,
) -> list[str]:
    """Answer queries as they come; returns them."""
    asked = []
    for query in queries:
        vector = as_unit(model.embed([query]))[0]
        answer = compare(collection, query, vector, settings.n_bits, settings.k)
        tables.show_answer(console, answer, documents.documents, plain=settings.plain)
        asked.append(query)
    return asked


def _typed(console: Console, collection: Collection) -> Iterator[str]:
    """Queries that somebody types; an empty line, the end of the input or Ctrl-C ends them."""
    with suppress(ImportError):
        import readline  # noqa: F401 lets `input` edit and recall lines
    console.print("Type what you look for in plain English; an empty line ends.")
    while True:
        if not collection.wait(0):
            console.print(f"{tables.counted(collection.n_ready)} so far, the others follow.")
        try:
            query = input("search> ").strip()
        except (EOFError, KeyboardInterrupt):
            console.print()
            return
        if not query:
            return
        yield query


def _wait(console: Console, collection: Collection, seconds: float | None) -> None:
    """Wait for all documents, or that long, and say how far it is where somebody looks."""
    if collection.wait(0):
        return
    end = None if seconds is None else time.monotonic() + seconds
    with console.status("embedding") as status:
        while not collection.wait(0.2) and (end is None or time.monotonic() < end):
            status.update(f"embedding, {collection.n_ready:,} of {len(collection):,}")
