"""`bitweigh paper`: the files it writes, its output and its errors."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from cli_cases import plain, run
from typer.testing import Result

from bitweigh_experiments.reproduce import Plan
from bitweigh_experiments.reproduce import run as running
from bitweigh_experiments.reproduce.measure import Effort, Setting
from bitweigh_experiments.reproduce.published import TABLES
from bitweigh_experiments.reproduce.results import KS, METHODS, Results

SMALL = ("--quick", "--rows", "1000", "--queries", "20")
NAME = "paper-reproduction"


def reproduce(*arguments: str | Path) -> Result:
    return run("paper", "reproduce", *arguments)


def test_the_help_has_an_example() -> None:
    done = reproduce("--help")
    assert done.exit_code == 0
    assert "Example: bitweigh paper reproduce --quick --out results" in plain(done.stdout)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """Run Table 1 at a small size, into a folder that does not exist yet."""
    out = tmp_path_factory.mktemp("cli") / "new" / "results"
    return out, reproduce(*SMALL, "--tables", "1", "--seed", "3", "--out", out)


def test_a_run_prints_the_path_of_its_report_and_nothing_else(done: tuple[Path, Result]) -> None:
    out, result = done
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{out / NAME}.html\n"


def test_a_run_writes_three_files(done: tuple[Path, Result]) -> None:
    names = sorted(file.name for file in done[0].iterdir())
    assert names == [f"{NAME}.csv", f"{NAME}.html", f"{NAME}.json"]


def test_the_records_are_those_of_the_tables_asked_for(done: tuple[Path, Result]) -> None:
    results = Results.load(done[0] / f"{NAME}.json")
    settings = {(cell.role, cell.hasher, cell.weigher, cell.bits) for cell in results.cells}
    assert settings == {("Places205", "LSH", "Asym", bits) for bits in (32, 64)}
    assert len(results.cells) == len(settings) * len(KS) * len(METHODS)


def test_the_csv_file_has_a_line_for_each_record(done: tuple[Path, Result]) -> None:
    results = Results.load(done[0] / f"{NAME}.json")
    with (done[0] / f"{NAME}.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["method"], line["ms"]) for line in lines] == [
        (cell.method, str(cell.ms)) for cell in results.cells
    ]


def test_the_report_names_the_command_that_made_it(done: tuple[Path, Result]) -> None:
    page = (done[0] / f"{NAME}.html").read_text(encoding="utf-8")
    command = "bitweigh paper reproduce --quick --tables 1 --rows 1000 --queries 20 --seed 3"
    assert f"<code>{command}</code>" in page


def test_a_run_prints_how_the_claims_fared(done: tuple[Path, Result]) -> None:
    lines = plain(done[1].stderr).splitlines()
    assert any(
        line.startswith("   6 of    6  MIWQ has the same precision as Linear") for line in lines
    )


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[Plan]:
    """Collect the plans that would be run, without measuring anything."""
    seen = []

    def no_run(plan: Plan, *_: object) -> Results:
        seen.append(plan)
        return Results({}, {})

    monkeypatch.setattr("bitweigh_experiments.commands.paper.reproduce", no_run)
    return seen


@pytest.mark.usefixtures("plans")
def test_a_run_prints_no_claims_of_which_nothing_was_measured(tmp_path: Path) -> None:
    result = reproduce("--out", tmp_path)
    assert result.exit_code == 0
    assert " of " not in plain(result.stderr)


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("1,3-5", {1, 3, 4, 5}),
        ("16", {16}),
        ("2-2, 2", {2}),
        ("1 - 16", set(range(1, len(TABLES) + 1))),
    ],
)
def test_tables_are_chosen_by_numbers_and_ranges(
    chosen: str, expected: set[int], plans: list[Plan], tmp_path: Path
) -> None:
    assert reproduce("--tables", chosen, "--out", tmp_path).exit_code == 0
    assert [plan.tables for plan in plans] == [expected]


def test_options_become_the_plan(plans: list[Plan], tmp_path: Path) -> None:
    reproduce("--out", tmp_path)
    reproduce("--quick", "--out", tmp_path)
    reproduce(*SMALL, "--data", tmp_path, "--seed", "5", "--out", tmp_path)
    assert plans == [
        Plan(),
        Plan.of(quick=True),
        Plan.of(tmp_path, quick=True, rows=1000, queries=20, seed=5),
    ]


@pytest.mark.parametrize("chosen", ["", "1,", "x", "1,3-", "-3", "3-1", "1-2-3", "0", "17", "1.5"])
def test_wrong_tables_are_refused_in_one_line(chosen: str, tmp_path: Path) -> None:
    result = reproduce(f"--tables={chosen}", "--out", tmp_path / "out")
    assert result.exit_code == 2
    expected = f"Invalid value for '--tables': expected 1 to 16, as in 1,3-5, got {chosen!r}"
    assert any(expected in line for line in plain(result.stderr).splitlines())
    assert not (tmp_path / "out").exists()


def test_a_missing_folder_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    result = reproduce("--data", "nowhere")
    assert result.exit_code == 2
    assert re.search(r"'--data': .*'nowhere' does not exist", plain(result.stderr))
    assert list(tmp_path.iterdir()) == []


def error_of(result: Result) -> str:
    """Return the one line that a failed run ends with."""
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    *_, last = plain(result.stderr).splitlines()
    assert last.startswith("error: ")
    return last


def test_a_bad_file_is_named_in_one_line(tmp_path: Path) -> None:
    # A name like a style of rich's, which must be printed as it is.
    folder = tmp_path / "[bold]"
    folder.mkdir()
    (folder / "places205.npz").write_bytes(b"no numbers")
    line = error_of(reproduce(*SMALL, "--tables", "1", "--data", folder, "--out", tmp_path))
    assert line == f"error: {folder / 'places205.npz'}: truncated, or not an npz file"


def test_a_missing_part_of_a_set_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "gist_base.fvecs").write_bytes(bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    line = error_of(reproduce(*SMALL, "--tables", "2", "--data", tmp_path, "--out", tmp_path))
    assert f"{tmp_path}: gist_query.fvecs is missing" in line


def test_a_folder_that_cannot_be_made_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    line = error_of(reproduce(*SMALL, "--out", tmp_path / "file" / "results"))
    assert str(tmp_path / "file" / "results") in line


def test_a_run_that_is_stopped_keeps_what_it_has_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured = running.measure
    calls: list[str] = []

    def stopped(setting: Setting, effort: Effort) -> object:
        if calls:
            raise KeyboardInterrupt
        calls.append(setting.weigher)
        return measured(setting, effort)

    monkeypatch.setattr(running, "measure", stopped)
    done = reproduce(*SMALL, "--tables", "1", "--out", tmp_path)
    assert done.exit_code == 130
    assert "stopped; " in done.stderr
    kept = Results.load(tmp_path / f"{NAME}.json")
    assert {cell.bits for cell in kept.cells} == {32}
    assert kept.settings["quick"] is True


def test_a_report_is_made_again_from_the_records(done: tuple[Path, Result], tmp_path: Path) -> None:
    records = tmp_path / "run.json"
    records.write_bytes((done[0] / f"{NAME}.json").read_bytes())
    result = run("paper", "report", records)
    assert result.stdout.strip() == str(tmp_path / "run.html")
    ours, first = (tmp_path / "run.html").read_text(), (done[0] / f"{NAME}.html").read_text()
    assert ours.replace("run.", f"{NAME}.") == first
    assert (tmp_path / "run.csv").read_bytes() == (done[0] / f"{NAME}.csv").read_bytes()


def test_a_report_of_something_else_is_refused_in_one_line(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    result = run("paper", "report", other)
    assert result.exit_code == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert "holds no records" in result.stderr
