"""The commands that build, change, search, check and time an index; their help and their docs."""

from __future__ import annotations

import json
import os
import re
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import ROOT, commands, done, examples, plain, run, shell
from typer.testing import CliRunner

import bitweigh
from bitweigh._cli import build_codes, change, folders
from bitweigh._cli.app import app

# Those that take minutes, or need data or more packages, have tests of their own.
RUN_HERE = [name for name in commands() if not name.startswith(("bitweigh demo", "bitweigh paper"))]


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_has_an_example_that_calls_it(name: str) -> None:
    found = examples(commands()[name])
    assert found, f"{name} --help has no example"
    # `bitweigh serve FOLDER` need not name its command.
    typed = name.removesuffix(" folder")
    assert all(re.search(rf"^(.*\| )?{typed}\b", one, re.MULTILINE) for one in found)


@pytest.mark.parametrize("name", sorted(commands()))
def test_examples_are_shown_line_by_line(name: str) -> None:
    shown = [line.strip() for line in plain(done(*name.split()[1:], "--help")).splitlines()]
    for one in examples(commands()[name]):
        lines = one.splitlines()
        assert all(any(line in own for own in shown) for line in lines)
        assert all(len(line) <= 79 for line in lines)


def test_lines_that_help_indents_can_be_pasted(tmp_path: Path) -> None:
    (script,) = examples(commands()["bitweigh build"])
    assert "\n" in script
    result = shell(script.replace("\n", "\n "), tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


def test_the_docs_have_the_examples_of_the_help_in_their_order() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    places = [page.find(one) for name in RUN_HERE for one in examples(commands()[name])]
    assert -1 not in places
    assert places == sorted(places)


def test_all_examples_run_one_after_the_other_in_an_empty_folder(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    page = (ROOT / "docs" / "cli.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    result = shell("\n".join(blocks), tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    assert len((tmp_path / "found.csv").read_text().splitlines()) == 1 + 3 * 100


@pytest.mark.parametrize("name", RUN_HERE)
def test_every_command_can_speak_json(name: str) -> None:
    if name == "bitweigh serve folder":  # prints a line of JSON for each request
        return
    assert any("--json" in own.opts for own in commands()[name].params)


CODES = np.random.default_rng(1).integers(0, 256, (300, 4), dtype=np.uint8)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with codes and an index of them."""
    monkeypatch.chdir(tmp_path)
    np.save("codes.npy", CODES)
    np.save("more.npy", CODES[:5] ^ 255)
    done("build", "codes.npy", "--codes", "-o", "index")
    return tmp_path


@pytest.mark.usefixtures("here")
def test_build_saves_an_index_of_all_codes() -> None:
    index = bitweigh.load("index")
    assert (index.n_bits, index.bitorder, len(index)) == (32, "big", 300)
    assert np.array_equal(index.codes_of(np.arange(300)), CODES)


@pytest.mark.usefixtures("here")
def test_build_says_in_a_line_what_it_made() -> None:
    line = done("build", "codes.npy", "--codes", "-o", "other")
    assert re.fullmatch(r"other: 300 codes of 32 bits, in \d+\.\d s\n", line)


@pytest.mark.usefixtures("here")
def test_build_takes_bits_order_and_ids() -> None:
    np.save("odd.npy", CODES & 0x0F)  # the upper bits of the last byte are unused
    Path("ids.txt").write_text("\n".join(map(str, range(1000, 1300))))
    options = ("--bits", "28", "--bitorder", "little", "--ids", "ids.txt")
    facts = json.loads(done("build", "odd.npy", "--codes", *options, "-o", "odd", "--json"))
    index = bitweigh.load("odd")
    assert (facts["rows"], facts["n_bits"]) == (300, 28)
    assert (index.n_bits, index.bitorder) == (28, "little")
    assert index.ids.tolist() == list(range(1000, 1300))


@pytest.mark.usefixtures("here")
def test_many_rows_are_added_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bitweigh._cli.folders._ROWS_AT_ONCE", 64)
    np.save("ids.npy", 999 - np.arange(300))
    done("add", "index", "codes.npy", "--ids", "ids.npy")
    assert np.array_equal(bitweigh.load("index").codes_of(999 - np.arange(300)), CODES)


@pytest.mark.usefixtures("here")
def test_build_replaces_an_index_only_if_told_to() -> None:
    assert run("build", "more.npy", "--codes", "-o", "index").exit_code == 1
    assert len(bitweigh.load("index")) == 300
    done("build", "more.npy", "--codes", "-o", "index", "--overwrite")
    assert len(bitweigh.load("index")) == 5


@pytest.mark.usefixtures("here")
def test_build_reads_codes_and_ids_from_parquet() -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"hash": [code.tobytes() for code in CODES], "key": np.arange(300) * 7}
    pq.write_table(pa.table(columns), "codes.parquet")
    done(
        "build", "codes.parquet", "--codes", "--column", "hash", "--id-column", "key", "-o", "keyed"
    )
    index = bitweigh.load("keyed")
    assert np.array_equal(index.codes_of(np.arange(300) * 7), CODES)


@pytest.mark.usefixtures("here")
def test_build_takes_several_files_and_says_how_rows_are_stored() -> None:
    limits = ("--build-memory", "128M", "--threads", "2")
    line = done(
        "build", "codes.npy", "more.npy", "--codes", "--layout", "lean", *limits, "-o", "two"
    )
    assert re.fullmatch(r"two: 305 codes of 32 bits, lean, in \d+\.\d s\n", line)
    index = bitweigh.load("two")
    assert np.array_equal(index.codes_of(np.arange(305)), np.concatenate([CODES, CODES[:5] ^ 255]))
    assert "\nrows           lean: layout='lean'\n" in done("info", "two")
    assert "\nrows           plain: fewer than 16,777,216 codes\n" in done("info", "index")
    assert json.loads(done("info", "two", "--json"))["layout"] == "lean: layout='lean'"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("layout", ["plain", "lean"])
def test_the_same_command_resumes_a_build(layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    command = ("build", "codes.npy", "--codes", "--layout", layout, "-o", "other")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as failing:
        failing.setattr("bitweigh._streaming.batches.publish_plain", full)
        failing.setattr("bitweigh._streaming.batches.publish_lean", full)
        assert "no room for the build" in plain(run(*command).stderr)
    assert Path("other.building", "journal.json").exists()
    if layout == "plain":  # as if it had been killed while it placed its files
        (codes,) = Path("other.building").glob("codes-*.npy")
        Path("other").mkdir(exist_ok=True)
        os.link(codes, Path("other", codes.name))
    facts = json.loads(done(*command, "--json"))
    assert (facts["resumed"], facts["layout"], facts["rows"]) == (True, layout, 300)
    assert np.array_equal(bitweigh.load("other").codes_of(np.arange(300)), CODES)
    assert not Path("other.building").exists()


@pytest.mark.usefixtures("here")
def test_options_of_streaming_are_for_codes() -> None:
    np.save("vectors.npy", np.ones((9, 4), np.float32))
    for option in (("--layout", "lean"), ("--build-memory", "1G"), ("--threads", "1")):
        result = run("build", "vectors.npy", "--hasher", "lsh", *option, "-o", "near")
        assert result.exit_code == 2
        assert "are for --codes" in plain(result.stderr)
    assert run("build", "vectors.npy", "vectors.npy", "-o", "near").exit_code == 2


@pytest.mark.usefixtures("here")
def test_add_adds_and_says_so() -> None:
    assert done("add", "index", "more.npy") == "index: added 5 codes; it has 305\n"
    index = bitweigh.load("index")
    assert np.array_equal(index.codes_of(np.arange(300, 305)), CODES[:5] ^ 255)


@pytest.mark.usefixtures("here")
def test_add_replaces_codes_of_ids_that_are_there() -> None:
    told = done(
        "add", "index", "more.npy", "--ids", "-", "--replace", stdin="7\n8\n900\n901\n902\n"
    )
    assert told == "index: added 3 codes, replaced 2; it has 303\n"
    assert np.array_equal(bitweigh.load("index").codes_of([7, 902]), CODES[[0, 4]] ^ 255)


@pytest.mark.usefixtures("here")
def test_a_failed_add_leaves_the_index_as_it_was() -> None:
    assert (
        run("add", "index", "more.npy", "--ids", "-", stdin="900\n901\n902\n903\n7").exit_code == 1
    )
    assert np.array_equal(bitweigh.load("index").ids, np.arange(300))


@pytest.mark.usefixtures("here")
def test_remove_takes_ids_from_arguments_and_from_a_pipe() -> None:
    told = done("remove", "index", "1", "2", "--ids", "-", stdin="2\n\n299\n")
    assert told == "index: removed 3 codes; it has 297\n"
    assert 299 not in bitweigh.load("index")


@pytest.mark.usefixtures("here")
def test_remove_passes_over_missing_ids_if_told_to() -> None:
    told = json.loads(done("remove", "index", "1", "5000", "--ignore-missing", "--json"))
    assert told == {"folder": "index", "removed": 1, "rows": 299}


def found_by(*options: str) -> list[tuple[int, int, int, float]]:
    rows = [json.loads(line) for line in done("search", "index", *options).splitlines()]
    return [(row["query"], row["rank"], row["id"], row["distance"]) for row in rows]


def expected_of(costs: np.ndarray, k: int, **options: object) -> list[tuple[int, int, int, float]]:
    found = bitweigh.load("index").search(costs, k, **options)  # type: ignore[arg-type]
    return [
        (query, rank + 1, int(found.ids[query, rank]), float(found.distances[query, rank]))
        for query in range(len(found.ids))
        for rank in range(found.ids.shape[1])
    ]


QUERIES = CODES[:4] ^ 3
WEIGHTS = np.random.default_rng(2).random(32)
FLOATS = np.random.default_rng(3).standard_normal((4, 32))


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("options", [(), ("--hamming",)])
def test_codes_are_searched_for_by_hamming_distance(options: tuple[str, ...]) -> None:
    np.save("queries.npy", QUERIES)
    expected = expected_of(bitweigh.costs.hamming(QUERIES, 32), 3)
    assert found_by("queries.npy", "-k", "3", *options) == expected


@pytest.mark.usefixtures("here")
def test_codes_are_searched_for_by_weights() -> None:
    np.save("queries.npy", QUERIES)
    np.save("weights.npy", WEIGHTS)
    expected = expected_of(bitweigh.costs.from_weights(QUERIES, WEIGHTS), 3)
    assert found_by("queries.npy", "-k", "3", "--weights", "weights.npy") == expected


@pytest.mark.usefixtures("here")
def test_floats_are_ranked_by_inner_product() -> None:
    np.save("queries.npy", FLOATS)
    expected = expected_of(bitweigh.costs.inner_product(FLOATS), 3)
    assert found_by("queries.npy", "-k", "3") == expected


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("single", [False, True])
def test_costs_are_taken_as_they_are(single: bool) -> None:
    costs = np.random.default_rng(4).random((4, 32, 2))[: 1 if single else 4]
    np.save("costs.npy", costs[0] if single else costs)
    assert found_by("costs.npy", "-k", "3", "--costs") == expected_of(costs, 3)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("option", ["allow", "deny"])
def test_filters_come_from_files_of_ids(option: str) -> None:
    np.save("queries.npy", QUERIES)
    Path("some.txt").write_text("0\n3\n77\n78\n79\n")
    expected = expected_of(bitweigh.costs.hamming(QUERIES, 32), 2, **{option: [0, 3, 77, 78, 79]})
    assert found_by("queries.npy", "-k", "2", f"--{option}", "some.txt") == expected


@pytest.mark.usefixtures("here")
def test_answers_are_the_same_in_every_format() -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    np.save("queries.npy", QUERIES)
    for ending in ("csv", "jsonl", "parquet", "npy", "npz"):
        done("search", "index", "queries.npy", "-k", "3", "-o", f"found.{ending}")
    rows = [json.loads(line) for line in Path("found.jsonl").read_text().splitlines()]
    assert pq.read_table("found.parquet").to_pylist() == rows
    names, *lines = Path("found.csv").read_text().splitlines()
    assert names == "query,rank,id,distance"
    assert lines == [",".join(map(str, row.values())) for row in rows]
    ids = [row["id"] for row in rows]
    assert np.load("found.npy").tolist() == np.load("found.npz")["ids"].tolist()
    assert np.load("found.npy").reshape(-1).tolist() == ids
    assert not list(Path().glob("*.part"))


@pytest.mark.usefixtures("here")
def test_many_queries_keep_their_numbers() -> None:
    np.save("queries.npy", np.tile(CODES, (2, 1)))
    found = found_by("queries.npy", "-k", "1")
    assert [query for query, *_ in found] == list(range(600))
    assert [distance for *_, distance in found] == [0.0] * 600


@pytest.mark.usefixtures("here")
def test_stdout_may_be_csv() -> None:
    np.save("queries.npy", QUERIES)
    first, *rest = done("search", "index", "queries.npy", "--format", "csv").splitlines()
    assert first == "query,rank,id,distance"
    assert len(rest) == 40


@pytest.mark.usefixtures("here")
def test_info_tells_what_there_is() -> None:
    told = json.loads(done("info", "index", "--json"))
    assert (told["holds"], told["rows"], told["n_bits"]) == ("codes", 300, 32)
    assert told["bytes_on_disk"] > told["bytes_of_codes"] >= 1200


@pytest.mark.usefixtures("here")
def test_info_is_in_plain_words() -> None:
    first, *rest = done("info", "index").splitlines()
    assert first == "index: 300 codes of 32 bits, bit order big"
    assert any(re.fullmatch(r"in memory +[\d.]+ kB: codes 1\.\d kB, ids .*", line) for line in rest)


@pytest.mark.usefixtures("here")
def test_verify_tells_that_all_is_well() -> None:
    assert done("verify", "index").startswith("index: 300 codes, nothing is damaged")


@pytest.mark.usefixtures("here")
def test_bench_times_the_search_against_the_scan() -> None:
    told = json.loads(done("bench", "index", "--queries", "3", "--json"))
    assert [line["k"] for line in told["times"]] == [1, 10, 100]
    assert all(line["search_ms"] > 0 and line["scan_ms"] > 0 for line in told["times"])


def test_bench_makes_codes_of_its_own() -> None:
    text = done("bench", "--rows", "1000", "--bits", "20", "--queries", "3")
    assert "1,000 codes of 20 bits" in text


def test_a_terminal_shows_progress_and_a_log_does_not(here: Path) -> None:
    arguments = ["search", "index", str(here / "codes.npy"), "-o", "found.csv"]
    shown = CliRunner(env={"FORCE_COLOR": "1"}).invoke(app, arguments)
    assert "searching" in shown.stderr
    assert run(*arguments).stderr == ""


def test_a_shell_can_complete_commands(tmp_path: Path) -> None:
    assert "--install-completion" in plain(done("--help"))
    call = "import sys; sys.argv = ['bitweigh']; from bitweigh._cli import main; main()"
    asked = 'export _BITWEIGH_COMPLETE=complete_bash COMP_WORDS="bitweigh ver" COMP_CWORD=1'
    assert shell(f'{asked}; python -c "{call}"', tmp_path).stdout == "verify\n"


def test_ctrl_c_exits_with_130(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bitweigh._cli.info.open_stored", stopped)
    result = run("info", tmp_path)
    assert result.exit_code == 130
    assert result.stderr == "stopped\n"


def test_a_reader_that_stops_early_is_no_error(here: Path) -> None:
    script = "bitweigh search index codes.npy -k 300 | head -n 1"
    result = shell(f"set -o pipefail; ({script}) || true", here)
    assert result.stderr == ""
    assert len(result.stdout.splitlines()) == 1


def test_debug_shows_where_an_error_comes_from(tmp_path: Path) -> None:
    result = run("--debug", "info", tmp_path / "nowhere")
    assert isinstance(result.exception, FileNotFoundError)


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("bitweigh._cli.info.open_stored", broken)
    assert isinstance(run("info", tmp_path).exception, ZeroDivisionError)


def test_commands_without_parquet_need_no_pyarrow(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    done("search", "index", here / "codes.npy", "-k", "1", "-o", "found.csv")


def codes_file(path: Path, rows: int, value: int) -> Path:
    np.save(path, np.full((rows, 2), value, dtype=np.uint8))
    return path


@pytest.mark.parametrize("command", ["add", "remove"])
def test_a_command_that_changes_an_index_locks_it_from_loading_to_saving(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = codes_file(tmp_path / "codes.npy", 3, 7)
    done("build", str(source), "--codes", "-o", str(tmp_path / "index"))
    loaded, locked = threading.Event(), []
    load = folders.load

    def load_slowly(*own: Any, **how: Any) -> bitweigh.Index:
        index = load(*own, **how)
        if not loaded.is_set():
            loaded.set()
            other.join(0.3)
            locked.append(other.is_alive())
        return index

    def add_too() -> None:
        loaded.wait(30)
        change.add_command(tmp_path / "index", source)

    other = threading.Thread(target=add_too)
    monkeypatch.setattr(folders, "load", load_slowly)
    other.start()
    done(command, str(tmp_path / "index"), str(source) if command == "add" else "1")
    other.join(30)
    assert locked == [True]
    assert len(bitweigh.load(tmp_path / "index")) == 3 + 3 + (3 if command == "add" else -1)


def test_of_two_builds_at_once_the_second_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = codes_file(tmp_path / "codes.npy", 3, 7), tmp_path / "index"
    check_codes = build_codes.check_codes

    def build_meanwhile(*own: Any, **how: Any) -> Any:
        monkeypatch.undo()
        done("build", str(source), "--codes", "-o", str(out))
        return check_codes(*own, **how)

    monkeypatch.setattr(build_codes, "check_codes", build_meanwhile)
    result = run("build", source, "--codes", "-o", out)
    assert result.exit_code == 1
    assert "must not exist or be empty" in plain(result.stderr)
    assert len(bitweigh.load(out)) == 3
