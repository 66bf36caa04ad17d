"""The demo in a browser: a server with the documents and the model that embeds what is typed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bitweigh_experiments.demo import cache
from bitweigh_experiments.demo.collection import as_unit
from bitweigh_experiments.demo.documents import Documents
from bitweigh_experiments.demo.model import Floats, Model, load_model

if TYPE_CHECKING:
    from bitweigh_experiments.demo.run import Settings

__all__ = ["NAME", "PORT", "fill", "serve_documents"]

NAME = "documents"
PORT = 8420
# Documents embedded and written at a time.
_BLOCK = 2048


def serve_documents(settings: Settings, port: int) -> int:
    """Serve the demo's documents until Ctrl-C; return the exit status."""
    from bitweigh.server import Settings as ServerSettings
    from bitweigh.server.process import serve

    model = load_model()
    kept = cache.folder()
    documents = settings.documents(kept)
    texts = [document.embedded for document in documents.documents]
    # A folder for each set of documents, so that none is shown in the place of another.
    check = cache.checksum(model.name, texts)
    folder = kept / f"page-{documents.kind}-{settings.n_bits}-{check}"
    print(f"{documents.source}: {len(texts):,} documents")
    fill(folder, documents, texts, model, settings.n_bits)
    if port:
        print(f"Open http://127.0.0.1:{port} in a browser; Ctrl-C ends the server.", flush=True)
    serve(
        folder,
        ServerSettings(),
        port=port,
        embedder=lambda asked: as_unit(model.embed(asked)),
        access_log=False,
    )
    return 0


def fill(folder: Path, documents: Documents, texts: list[str], model: Model, n_bits: int) -> None:
    """Write the documents into a server's folder, unless they are there."""
    import orjson

    from bitweigh.server import Settings as ServerSettings
    from bitweigh.server.changes import Item, Upsert
    from bitweigh.server.definition import Definition
    from bitweigh.server.store import Store

    folder.parent.mkdir(parents=True, exist_ok=True)
    store = Store(folder, ServerSettings())
    try:
        definition = Definition(
            kind="vectors",
            n_bits=n_bits,
            dim=model.embed(["one"]).shape[1],
            # Fit to all documents, and not only to the first thousand.
            fit_after=max(2, len(texts)),
        )
        collection, _ = store.create(NAME, definition)
        for start in range(collection.count(), len(texts), _BLOCK):
            vectors: Floats = as_unit(model.embed(texts[start : start + _BLOCK]))
            items = []
            for place, vector in enumerate(vectors, start):
                document = documents.documents[place]
                payload = {"name": document.name, "text": document.text}
                shown = {name: text for name, text in payload.items() if text}
                value = collection.contents.value_of(vector.tolist(), None, f"document {place}")
                items.append(Item(place, None, value, orjson.dumps(shown).decode()))
            collection.written(Upsert(items))
    finally:
        store.close()
