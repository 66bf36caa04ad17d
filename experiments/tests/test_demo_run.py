"""The demo as users see it: tables, prompt, options, errors."""

from __future__ import annotations

import importlib.util
import io
import re
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from demo_cases import FAKE, N_DIMS, sentences, texts_file
from rich.console import Console
from typer.testing import CliRunner

from bitweigh._cli.app import app
from bitweigh_experiments.demo import __main__ as module
from bitweigh_experiments.demo import cache, collection, debian, run, tables
from bitweigh_experiments.demo.compare import Answer, Found, Line, Summary
from bitweigh_experiments.demo.document import Document
from bitweigh_experiments.demo.documents import shipped
from bitweigh_experiments.demo.model import Floats, Model

DOCUMENTS = [
    Document("fdupes", "identifies duplicate files"),
    Document("rdfind", "find duplicate files utility"),
    Document("", "a line of a file"),
]
ANSWER = Answer(
    "find duplicate files",
    3000,
    128,
    (
        Found("float cosine", np.array([0, 1]), 1.0, 1024, 2e-3),
        Found("weighted bits", np.array([1, 0]), 1.0, 16, 3e-5),
        Found("plain Hamming", np.array([2, 0]), 0.5, 16, 4e-5),
    ),
)
real_model = pytest.mark.skipif(
    importlib.util.find_spec("wordllama") is None, reason="wordllama is not installed"
)


def printed(width: int) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=width, highlight=False, markup=False, emoji=False), out


@pytest.fixture
def demo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file to search, with a fake model and a temporary cache folder."""
    monkeypatch.setattr(run, "load_model", lambda: FAKE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    return texts_file(tmp_path)


def invoke(*arguments: str | Path) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, ["demo", *map(str, arguments)])
    return done.exit_code, done.stdout, done.stderr


def test_three_lists_stand_side_by_side_with_marks_and_figures() -> None:
    console, out = printed(110)
    tables.show_answer(console, ANSWER, DOCUMENTS, plain=True)
    lines = [re.sub(r"  +", "|", line.strip()) for line in out.getvalue().splitlines() if line]
    assert lines[0] == '"find duplicate files", 3,000 documents'
    assert lines[1] == "float cosine|weighted bits, 128|plain Hamming, 128"
    assert lines[2].startswith("1|fdupes identifies")
    assert "|* rdfind find" in lines[2]
    assert lines[2].endswith("|a line of a file")
    assert lines[3].count("* fdupes") == 2
    assert lines[4:] == [
        "overlap@2|2 of 2|1 of 2",
        "bytes/item|1,024|16|16",
        "\u00b5s/query|2,000|30|40",
    ]


@pytest.mark.parametrize("width", [30, 60, 80, 200])
@pytest.mark.parametrize("plain", [True, False])
def test_no_line_is_wider_than_the_terminal_and_every_name_is_there(
    width: int, plain: bool
) -> None:
    console, out = printed(width)
    tables.show_answer(console, ANSWER, DOCUMENTS, plain=plain)
    title, *lines = out.getvalue().strip().splitlines()
    assert title.startswith('"find')
    assert max(map(len, lines)) <= width
    assert out.getvalue().count("fdupes") == 3
    assert out.getvalue().count("rdfind") == 2


def test_plain_tables_have_nothing_but_text() -> None:
    console, out = printed(100)
    tables.show_answer(console, ANSWER, DOCUMENTS, plain=True)
    assert set(out.getvalue()) <= {chr(c) for c in range(32, 127)} | set("\n\u00b5\u2026")


@pytest.mark.parametrize(
    ("exact", "says"), [(True, "to the last bit"), (False, "WRONG: a weighted answer")]
)
def test_the_summary_shows_shares_and_says_whether_it_was_checked(exact: bool, says: str) -> None:
    console, out = printed(80)
    lines = (Line("float cosine", None, 1.0, 1024, 3100.4), Line("weighted bits", 64, 0.625, 8, 9))
    tables.show_summary(console, Summary(41_000, 10, 10, lines, exact), plain=True)
    text = re.sub(r"  +", " ", out.getvalue())
    assert "10 queries, 41,000 documents" in text
    assert "float cosine 100% 1,024 3,100" in text
    assert re.search(r"weighted bits 64 6[23]% 8 9", text)
    assert says in text


def test_the_summary_fits_a_narrow_terminal() -> None:
    console, out = printed(40)
    lines = (Line("weighted bits", 64, 0.5, 8, 12345.0),)
    tables.show_summary(console, Summary(41_000, 1, 10, lines, True), plain=False)
    assert re.search(r"^weighted +64 +50% +8 +12,345$", out.getvalue(), re.MULTILINE)
    assert max(map(len, out.getvalue().splitlines())) <= 40


def test_an_empty_query_is_refused_in_one_line(demo: Path) -> None:
    code, _, err = invoke("--texts", demo, " ")
    assert (code, err) == (1, "error: expected words to look for, got an empty query\n")


def test_queries_given_are_answered_and_summed_up(demo: Path) -> None:
    code, out, _ = invoke(
        "--texts", demo, "--bits", "40", "-k", "5", "--plain", "counts maps twice"
    )
    assert code == 0
    assert "512 documents: lines of sentences.txt" in out
    assert '"counts maps twice", 512 documents' in out
    assert "overlap@5" in out
    assert "1 query, 512 documents" in out
    assert "to the last bit" in out


def test_without_a_terminal_and_queries_ten_samples_are_taken(demo: Path) -> None:
    code, out, _ = invoke("--texts", demo, "--bits", "40", "--plain")
    assert code == 0
    assert len(re.findall(r'^".*", 512 documents$', out, re.MULTILINE)) == 10
    assert "10 queries, 512 documents" in out


def test_samples_are_answered_before_all_is_embedded_and_summed_up_after(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "FIRST", 100)
    monkeypatch.setattr(run, "PATIENCE", 0.0)
    asked = threading.Event()

    def embed(texts: Sequence[str]) -> Floats:
        if len(texts) == 1:
            asked.set()
        elif len(texts) > 100:
            assert asked.wait(30)
        return FAKE.embed(texts)

    console, out = printed(100)
    settings = run.Settings(("draws stars",), n_bits=40, texts=demo, plain=True)
    assert run.demonstrate(settings, console, Model("words", embed), interactive=False) == 0
    assert re.search(r'"draws stars", (100|512) documents', out.getvalue())
    assert "1 query, 512 documents" in out.getvalue()


def test_in_a_terminal_queries_are_typed_until_an_empty_line(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = iter(["draws stars", "  sends letters ", "", "never asked"])
    monkeypatch.setattr("builtins.input", lambda _: next(lines))
    console, out = printed(100)
    settings = run.Settings(n_bits=40, texts=demo, plain=True)
    assert run.demonstrate(settings, console, FAKE, interactive=True) == 0
    asked = re.findall(r'^"(.*)", 512 documents$', out.getvalue(), re.MULTILINE)
    assert asked == ["draws stars", "sends letters"]
    assert "2 queries, 512 documents" in out.getvalue()


def test_queries_that_are_given_are_not_asked_for(
    demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda _: pytest.fail("asked"))
    console, out = printed(100)
    settings = run.Settings(("draws stars",), n_bits=40, texts=demo)
    assert run.demonstrate(settings, console, FAKE, interactive=True) == 0
    assert '"draws stars", 512 documents' in out.getvalue()


@pytest.mark.parametrize("ends", [EOFError, KeyboardInterrupt])
def test_the_end_of_the_input_ends_the_prompt(
    demo: Path, monkeypatch: pytest.MonkeyPatch, ends: type[BaseException]
) -> None:
    def stop(_: str) -> str:
        raise ends

    monkeypatch.setattr("builtins.input", stop)
    console, out = printed(100)
    settings = run.Settings(n_bits=40, texts=demo)
    assert run.demonstrate(settings, console, FAKE, interactive=True) == 0
    assert "quer" not in out.getvalue().split("ends the demo.")[1]


def test_a_second_run_embeds_the_queries_only(demo: Path, tmp_path: Path) -> None:
    embedded: list[int] = []

    def counting(texts: Sequence[str]) -> Floats:
        embedded.append(len(texts))
        return FAKE.embed(texts)

    model = Model(FAKE.name, counting)
    settings = run.Settings(("draws stars",), n_bits=40, texts=demo, plain=True)
    outputs = []
    for _ in range(2):
        console, out = printed(100)
        run.demonstrate(settings, console, model, interactive=False)
        outputs.append(re.sub(r"(\u00b5s/query|float|weighted bits|plain).*", "", out.getvalue()))
    assert embedded == [512, 1, 1, 1, 1]
    assert outputs[0] == outputs[1]
    assert len(list((tmp_path / "cache" / "bitweigh" / "demo").glob("texts-*.npy"))) == 1


def test_changed_texts_are_embedded_anew(demo: Path) -> None:
    settings = run.Settings(("draws stars",), n_bits=40, texts=demo, plain=True)
    for n in (512, 511):
        demo.write_text("\n".join(sentences()[:n]), encoding="utf-8")
        console, out = printed(100)
        run.demonstrate(settings, console, FAKE, interactive=False)
        assert f'"draws stars", {n} documents' in out.getvalue()
    assert len(list(cache.folder().glob("*.npy"))) == 1


def test_more_bits_than_dimensions_are_refused_in_one_line(demo: Path) -> None:
    code, _, err = invoke("--texts", demo, "--bits", str(N_DIMS + 1), "draws stars")
    assert code == 1
    assert err.startswith("error: ITQ has at most one bit per feature")
    assert err.count("\n") == 1


def test_fetch_and_texts_exclude_each_other(demo: Path) -> None:
    code, _, err = invoke("--texts", demo, "--fetch", "x")
    assert code == 2
    assert "--fetch" in err


def test_python_and_other_texts_exclude_each_other(demo: Path) -> None:
    for other in (("--texts", demo), ("--fetch",)):
        code, _, err = invoke(*other, "--python", "x")
        assert code == 2
        assert "--python" in err


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [(KeyboardInterrupt(), 130, "stopped\n"), (OSError("no apt"), 1, "error: no apt\n")],
)
def test_as_a_module_it_stops_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    code: int,
    says: str,
) -> None:
    def fail(_: object) -> int:
        raise raised

    monkeypatch.setattr(module, "run", fail)
    monkeypatch.setattr(sys, "argv", ["demo", "a query"])
    assert module.main() == code
    assert capsys.readouterr().err == says


@pytest.mark.parametrize("package", ["rich", "wordllama"])
def test_without_its_packages_it_says_in_one_line_what_to_install(package: str) -> None:
    code = (
        f"import runpy, sys; sys.modules[{package!r}] = None; sys.argv[1:] = ['a query']; "
        "runpy.run_module('bitweigh_experiments.demo', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(
        rf"error: the demo needs {package}.*: pip install bitweigh-experiments\n", done.stderr
    )


@real_model
def test_the_real_model_finds_what_is_meant_in_the_shipped_documents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(debian, "available", list)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "120")
    assert run.run(run.Settings(plain=True)) == 0
    text = capsys.readouterr().out
    for query in shipped().queries:
        assert f'"{query}"' in text
    assert "to the last bit" in text
    shares = {
        (way, int(bits)): int(share)
        for way, bits, share in re.findall(r"^(\w+ \w+) +(\d+) +(\d+)%", text, re.MULTILINE)
    }
    weighted, plain = (
        [shares[way, bits] for bits in (64, 128, 256)] for way in ("weighted bits", "plain Hamming")
    )
    assert sum(weighted) > sum(plain)
    assert weighted == sorted(weighted)
