"""The demo in a browser: the collection that its server has, and how it is started."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from demo_cases import FAKE, sentences, texts_file
from typer.testing import CliRunner

from bitweigh._cli.app import app
from bitweigh.server import Settings
from bitweigh.server.store import Store
from bitweigh_experiments.demo import __main__ as module
from bitweigh_experiments.demo import run, serving
from bitweigh_experiments.demo.document import Document
from bitweigh_experiments.demo.documents import Documents


def documents() -> Documents:
    found = [Document(f"name {place}", text) for place, text in enumerate(sentences())]
    return Documents("texts", "some texts", tuple(found), ())


def filled(folder: Path) -> tuple[int, int, bool]:
    """Items, last change, and whether there are codes of all of them."""
    store = Store(folder, Settings())
    try:
        collection = store[serving.NAME]
        codes = collection.view().codes
        return collection.count(), collection.seq, codes is not None and len(codes) > 0
    finally:
        store.close()


def test_documents_are_written_once_and_fitted_to_all_of_them(tmp_path: Path) -> None:
    given = documents()
    texts = [document.embedded for document in given.documents]
    serving.fill(tmp_path / "data", given, texts, FAKE, 16)
    items, seq, fitted = filled(tmp_path / "data")
    assert (items, fitted) == (len(texts), True)
    serving.fill(tmp_path / "data", given, texts, FAKE, 16)
    assert filled(tmp_path / "data") == (items, seq, True)


@pytest.mark.parametrize("started", ["module", "command"])
def test_the_option_serve_starts_a_server_with_the_embedder(
    started: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any
) -> None:
    served: list[tuple[Path, int, Any]] = []

    def serve(folder: Path, _: Settings, *, port: int, embedder: Any, access_log: bool) -> None:
        assert access_log is False
        served.append((folder, port, embedder(["a text"])))

    monkeypatch.setattr(serving, "load_model", lambda: FAKE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("bitweigh.server.process.serve", serve)
    texts = texts_file(tmp_path)
    if started == "command":
        options = ["demo", "--serve", "--port", "8123", "--bits", "32", "--texts", str(texts)]
        said = CliRunner().invoke(app, options)
        assert said.exit_code == 0, said.output
        shown = said.output
    else:
        monkeypatch.setattr(run, "choose", lambda *_, **__: documents())
        monkeypatch.setattr(module, "Settings", partial(run.Settings, n_bits=32))
        monkeypatch.setattr("sys.argv", ["demo", "--serve", "--port", "8123"])
        assert module.main() == 0
        shown = capsys.readouterr().out
    assert "Open http://127.0.0.1:8123 in a browser" in shown
    ((folder, port, vectors),) = served
    assert (port, vectors.shape[0]) == (8123, 1)
    assert filled(folder)[0] > 0
