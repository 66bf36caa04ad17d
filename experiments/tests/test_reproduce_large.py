"""Tables 6 to 8 at a large number of rows: scans by pieces, a small run, report and command."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

import numpy as np
import pytest
from cli_cases import plain, run
from numpy.typing import NDArray

import bitweigh
from bitweigh import reference
from bitweigh_experiments.datasets import CodeFiles
from bitweigh_experiments.reproduce.large import LargePlan, LargeResults, run_large
from bitweigh_experiments.reproduce.large import build as building
from bitweigh_experiments.reproduce.large import measure as measuring
from bitweigh_experiments.reproduce.large.build import build_index
from bitweigh_experiments.reproduce.large.growth import exponents, size_exponents
from bitweigh_experiments.reproduce.large.likeness import likeness, table
from bitweigh_experiments.reproduce.large.memory import PeakMemory, drop_cached, folder_bytes
from bitweigh_experiments.reproduce.large.records import Exactness, SizeRecord, Timing
from bitweigh_experiments.reproduce.large.report import markdown
from bitweigh_experiments.reproduce.large.scans import definition, full_scan, time_linear_scan
from bitweigh_experiments.reproduce.results import KS

ROWS = 20_000
OUR_METHODS = ("bitweigh", "bitweigh batch", "bitweigh cold")


def files_of(codes: NDArray[np.uint8], n_bits: int, folder: Path, piece: int = 700) -> CodeFiles:
    for number, first in enumerate(range(0, len(codes), piece)):
        np.save(folder / f"codes-{number:06}.npy", codes[first : first + piece])
    return CodeFiles(folder, n_bits)


@pytest.mark.parametrize("n_bits", [5, 12, 64])
@pytest.mark.parametrize("scan", [full_scan, definition])
def test_scans_by_pieces_follow_the_definition(scan: object, n_bits: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(n_bits)
    # Few different costs and few bits: many ties, within pieces and across them.
    codes = np.packbits(rng.integers(0, 2, (2000, n_bits), dtype=np.uint8), axis=1)
    costs = rng.integers(-3, 4, (6, n_bits, 2)) * 0.1
    source = files_of(codes, n_bits, tmp_path)
    assert callable(scan)
    found, expected = scan(source, costs, 50, 2), reference.search(codes, costs, 50)
    assert np.array_equal(found.ids, expected.ids)
    assert np.array_equal(found.distances, expected.distances)


def test_scans_of_fewer_codes_than_neighbours_are_padded(tmp_path: Path) -> None:
    codes = np.arange(10, dtype=np.uint8)[:, np.newaxis]
    costs = np.random.default_rng(0).standard_normal((2, 8, 2))
    source = files_of(codes, 8, tmp_path, piece=4)
    expected = reference.search(codes, costs, 20)
    for found in (definition(source, costs, 20, 1), full_scan(source, costs, 20, 1)):
        assert np.array_equal(found.ids, expected.ids)
        assert np.array_equal(found.distances, expected.distances)


def test_the_papers_scan_by_pieces_finds_the_nearest(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 256, (2000, 4), dtype=np.uint8)
    costs = rng.standard_normal((3, 32, 2))
    scanned = time_linear_scan(files_of(codes, 32, tmp_path), costs, 10)
    assert scanned.seconds > 0
    assert 0 < scanned.cpu_share < 1.5
    assert np.array_equal(scanned.found.ids, reference.search(codes, costs, 10).ids)


def test_an_index_of_pieces_has_row_numbers_as_ids(tmp_path: Path) -> None:
    codes = np.random.default_rng(1).integers(0, 256, (2000, 4), dtype=np.uint8)
    (tmp_path / "codes").mkdir()
    build_index(files_of(codes, 32, tmp_path / "codes"), tmp_path / "index", 2**30)
    index = bitweigh.Index.load(tmp_path / "index", mmap=True)
    assert np.array_equal(index.codes_of([0, 699, 700, 1999]), codes[[0, 699, 700, 1999]])
    assert len(index) == 2000


def test_the_streaming_build_gets_files_of_exactly_these_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[tuple[list[Path], Path, int]] = []

    def from_batches(source: list[Path], path: Path, *, build_memory: int) -> None:
        calls.append((source, path, build_memory))

    monkeypatch.setattr(building.bitweigh.Index, "from_batches", from_batches, raising=False)
    codes = np.arange(100, dtype=np.uint8)[:, np.newaxis]
    (tmp_path / "codes").mkdir()
    whole = files_of(codes, 8, tmp_path / "codes", piece=30)
    cut = CodeFiles(tmp_path / "codes", 8, 70)
    for source in (whole, cut, cut):
        assert build_index(source, tmp_path / "index", 12345) == "streamed"
    assert [call[1:] for call in calls] == [(tmp_path / "index", 12345)] * 3
    assert calls[0][0] == whole.paths
    assert calls[1][0][:2] == whole.paths[:2]
    assert calls[1] == calls[2]
    for (paths, _, _), expected in zip(calls, (codes, codes[:70], codes[:70]), strict=True):
        assert np.array_equal(np.concatenate([np.load(path) for path in paths]), expected)
    (tmp_path / "index").mkdir()
    building.remove(tmp_path / "index")
    assert [path.name for path in tmp_path.iterdir()] == ["codes"]


def test_a_build_that_was_stopped_is_marked_as_resumed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    endings: list[type[BaseException] | None] = [KeyboardInterrupt, None]

    def from_batches(_: object, path: Path, *, build_memory: int) -> None:  # noqa: ARG001
        ending = endings.pop(0)
        if ending is not None:
            raise ending
        path.mkdir()

    monkeypatch.setattr(building.bitweigh.Index, "from_batches", from_batches, raising=False)
    (tmp_path / "codes").mkdir()
    source = files_of(np.zeros((10, 1), dtype=np.uint8), 8, tmp_path / "codes")
    with pytest.raises(KeyboardInterrupt):
        building.built(source, tmp_path / "index", 1)
    done = building.built(source, tmp_path / "index", 1)
    assert done.how == "streamed, resumed"
    assert building.built(source, tmp_path / "index", 1) == done
    record = SizeRecord(8, 10, done.how, done.seconds, 1, 1, 1, {"codes": 1}, 1.0, 1.0)
    assert record.resumed


def test_the_peak_of_memory_is_seen_and_mapped_files_do_not_count(tmp_path: Path) -> None:
    with PeakMemory() as before:
        pass
    if before.bytes is None:
        pytest.skip("this system does not tell RssAnon")
    (tmp_path / "file").write_bytes(bytes(2**25))
    with PeakMemory() as mapped:
        assert np.memmap(tmp_path / "file", mode="r").sum() == 0
    assert mapped.bytes is not None
    assert mapped.bytes < before.bytes + 2**24
    with PeakMemory() as filled:
        array = np.full(2**26, 1, dtype=np.uint8)
        end = time.monotonic() + 10  # by then the thread has taken a sample
        while (filled.bytes or 0) <= before.bytes + 2**25 and time.monotonic() < end:
            time.sleep(0.01)
        del array
    assert filled.bytes is not None
    assert filled.bytes > before.bytes + 2**25


def test_files_whose_pages_were_dropped_are_unchanged(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "part" / "file").write_bytes(b"x" * 5000)
    drop_cached(tmp_path)
    assert (tmp_path / "part" / "file").read_bytes() == b"x" * 5000
    assert folder_bytes(tmp_path) == 5000


def test_sizes_are_tenths_of_all_rows(tmp_path: Path) -> None:
    plan = LargePlan(10**9, tmp_path)
    assert plan.sizes == (10**6, 10**7, 10**8, 10**9)
    assert LargePlan(ROWS, tmp_path).sizes == (2000, ROWS)
    assert plan.peer_rows(64) == 260_000_000  # 12 GiB at 48 bytes a row
    assert LargePlan(ROWS, tmp_path).peer_rows(64) == ROWS


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[LargePlan, LargeResults, Path]:
    folder = tmp_path_factory.mktemp("large")
    plan = LargePlan(ROWS, folder / "work", queries=30, cold_queries=2, definition_queries=5)
    steps: list[str] = []
    results = run_large(plan, steps.append, folder / "records.json")
    return plan, results, folder


def test_a_run_measures_every_method_at_every_size(
    done: tuple[LargePlan, LargeResults, Path],
) -> None:
    _, results, _ = done
    for bits in (64, 32):
        for k in KS:
            for n in (2000, ROWS):
                for method in ("Linear Scan", "MIH", "MIWQ", *OUR_METHODS):
                    ms = results.ms(bits, n, k, method)
                    assert (ms or 0) > 0, (bits, n, k, method)
            assert results.ms(bits, ROWS, k, "PQTable_max_heap") is not None
            assert results.ms(bits, 2000, k, "PQTable_max_heap") is None


def test_a_run_compares_all_answers(done: tuple[LargePlan, LargeResults, Path]) -> None:
    assert done[1].exactness == [Exactness(bits, ROWS, 100, 30, 5, 0) for bits in (64, 32)]


def test_a_run_records_what_each_index_took(done: tuple[LargePlan, LargeResults, Path]) -> None:
    _, results, _ = done
    assert [(record.bits, record.rows) for record in results.sizes] == [
        (64, 2000),
        (64, ROWS),
        (32, 2000),
        (32, ROWS),
    ]
    for record in results.sizes:
        assert record.disk_bytes >= record.rows * record.bits // 8
        assert record.build_seconds > 0
        assert record.parts["codes"] >= record.rows * record.bits // 16  # keys imply the rest


def test_precision_of_the_index_is_that_of_the_scan(
    done: tuple[LargePlan, LargeResults, Path],
) -> None:
    found = {(p.bits, p.k, p.method): p.precision for p in done[1].precision}
    assert len(found) == 2 * len(KS) * 4
    for bits in (64, 32):
        for k in KS:
            assert found[bits, k, "bitweigh"] == found[bits, k, "Linear Scan"]
        assert found[bits, 100, "Linear Scan"] > found[bits, 100, "Baseline"]


def test_a_run_leaves_no_codes_and_no_index(done: tuple[LargePlan, LargeResults, Path]) -> None:
    assert list(done[0].work.iterdir()) == []


def test_records_are_read_back(done: tuple[LargePlan, LargeResults, Path]) -> None:
    assert LargeResults.load(done[2] / "records.json") == done[1]


def test_a_finished_run_does_nothing_again(
    done: tuple[LargePlan, LargeResults, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bitweigh_experiments.reproduce.large.run.write_pieces", None)
    plan, results, folder = done
    assert run_large(plan, lambda _: None, folder / "records.json") == results


def test_a_stopped_run_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    plan = LargePlan(
        ROWS,
        tmp_path / "work",
        tables=frozenset({7}),
        bits=(32,),
        queries=5,
        cold_queries=1,
        keep=True,
    )
    compare = measuring.compare

    def stopped(*_: object) -> Exactness:
        raise KeyboardInterrupt

    monkeypatch.setattr("bitweigh_experiments.reproduce.large.run.compare", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_large(plan, lambda _: None, tmp_path / "records.json")
    assert [record.rows for record in LargeResults.load(tmp_path / "records.json").sizes] == [2000]
    monkeypatch.setattr("bitweigh_experiments.reproduce.large.run.compare", compare)
    # The index was finished before.
    monkeypatch.setattr(building, "build_index", None)
    results = run_large(plan, lambda _: None, tmp_path / "records.json")
    assert [record.rows for record in results.sizes] == [2000, ROWS]
    assert results.exactness[0].wrong == 0


def test_a_wrong_answer_is_counted(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 256, (500, 4), dtype=np.uint8)
    costs = rng.standard_normal((4, 32, 2))
    index = bitweigh.Index(32)
    index.add(codes)
    index.remove([int(index.search(costs[3], 1).ids[0])])
    found = measuring.compare(index, files_of(codes, 32, tmp_path), costs, 2, 1)
    assert found.wrong >= 1
    assert found.scanned == 4
    assert found.defined == 2


def test_a_wrong_id_is_counted_though_its_distance_is_right(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 256, (500, 4), dtype=np.uint8)
    costs = rng.standard_normal((4, 32, 2))
    index = bitweigh.Index(32)
    index.add(codes, ids=np.arange(1, 501))
    assert measuring.compare(index, files_of(codes, 32, tmp_path), costs, 2, 1).wrong == 4


def a_billion() -> LargeResults:
    """Return records of a run at a billion rows, made up."""
    results = LargeResults(
        {"CPU": "a fast one"},
        {"rows": 10**9, "queries": 1000, "seed": 0, "threads": 2, "peer_memory": 2**33}
        | {"data": "mixture fitted on dense SIFT"},
        {"64": 2.5e6},
    )
    for power in (7, 8, 9):
        n = 10**power
        results.sizes.append(
            SizeRecord(64, n, "streamed", n / 2e6, 18 * n, 2**31, None, {"codes": 5 * n}, 2.0, None)
        )
        for k in KS:
            results.timings += [
                Timing(64, n, k, "Linear Scan", n / 5e5, 10),
                Timing(64, n, k, "bitweigh", 1e-4 * k * n**0.5 / 30, 1000, 12.0, 3456.0),
            ]
    results.timings.append(Timing(64, 10**8, 1, "MIWQ", 0.5, 100, 77.0, 99.0, 2))
    return results


def test_the_report_puts_the_papers_figures_beside_ours() -> None:
    text = markdown(a_billion(), {64: "growth.svg"})
    (line,) = [line for line in text.splitlines() if "bitweigh, warm, one thread" in line]
    # 0.105 ms, 2000 ms / 0.105 ms; then the paper's for 1-NN.
    assert line.startswith("| 64 | bitweigh, warm, one thread | 0.105 | 18,974 | 1.05 | 1,897 |")
    assert line.endswith("| 7.78 | 5607.1 | 12.65 | 3448.4 | 32.17 | 1356.0 |")
    assert "| 64 | 1 | 100,000,000 | MIWQ | 2 | 0.500 | 77.0 | 99.0 | 7.78 |" in text
    assert "| 64 | 1,000,000,000 | streamed | 500 | 2.00 | 18.0 | 2.00 |" in text
    assert "2.50 million codes of 64 bits a second" in text
    assert "](growth.svg)" in text


def test_the_report_says_that_cold_searches_were_skipped() -> None:
    results = a_billion()
    assert "cold searches were skipped" in markdown(results, {})
    results.timings.append(Timing(64, 10**9, 1, "bitweigh cold", 30.0, 20))
    assert "cold searches were skipped" not in markdown(results, {})


def test_the_report_has_no_rate_of_a_resumed_build() -> None:
    results = a_billion()
    results.sizes[-1] = dataclasses.replace(results.sizes[-1], how="streamed, resumed")
    text = markdown(results, {})
    assert "| 64 | 1,000,000,000 | streamed, resumed | 500 | \u2013 | 18.0 |" in text


def test_the_report_warns_of_a_busy_machine() -> None:
    results = a_billion()
    results.timings.append(Timing(64, 10**9, 1, "bitweigh", 0.1, 9, cpu_share=0.99))
    assert "busy" not in markdown(results, {})
    results.timings.append(Timing(64, 10**9, 10, "bitweigh", 0.1, 9, cpu_share=0.5))
    assert "The machine was busy:** Linear Scan and warm searches had 50% to 99% of a CPU" in (
        markdown(results, {})
    )


def test_exponents_are_those_of_the_growth() -> None:
    powers = exponents(a_billion(), 64)
    assert powers["Linear Scan", 1] == pytest.approx(1)
    assert powers["bitweigh", 100] == pytest.approx(0.5)
    assert ("MIWQ", 1) not in powers  # a single size
    assert size_exponents(a_billion(), 64) == pytest.approx((1, 1))


def test_the_command_writes_records_and_a_report(tmp_path: Path) -> None:
    options = ("--rows", "2e3", "--large", "--queries", "10", "--out", tmp_path / "out")
    result = run("paper", "reproduce", "--tables", "6", "7", *options)
    assert result.exit_code == 0, result.output
    report = tmp_path / "out" / "paper-large.md"
    assert result.stdout == f"{report}\n"
    text = report.read_text()
    assert "## Table 6" in text
    assert "## Table 7" in text
    assert "64 bits, 2,000 rows: building the index" in plain(result.stderr)
    again = run("paper", "report", tmp_path / "out" / "paper-large.json")
    assert again.stdout == f"{report}\n"
    assert report.read_text() == text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--large",), "needs --tables 6, 7 or 8"),
        (("--large", "--tables", "1"), "needs --tables 6, 7 or 8"),
        (("--tables", "6", "x"), "expected 1 to 16"),
        (("7",), "unexpected '7'"),
        (("--rows", "many"), "expected a whole number from 1000 to 4e9, got 'many'"),
        (("--rows", "999"), "expected a whole number from 1000 to 4e9, got '999'"),
        (("--rows", "1e10"), "expected a whole number from 1000 to 4e9, got '1e10'"),
        (("--rows", "1000.5"), "expected a whole number"),
    ],
)
def test_wrong_options_are_refused(options: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    result = run("paper", "reproduce", *options, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert expected in " ".join(plain(result.stderr).split())
    assert not (tmp_path / "out").exists()


def test_many_rows_of_these_tables_go_to_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plans: list[LargePlan] = []

    def no_run(plan: LargePlan, *_: object) -> LargeResults:
        plans.append(plan)
        return dataclasses.replace(a_billion())

    monkeypatch.setattr("bitweigh_experiments.commands.paper.run_large", no_run)
    options = ("--rows", "1e9", "--build-memory", "2", "--work", tmp_path / "work")
    assert run("paper", "reproduce", "--tables", "6", "7", "8", *options, "--out", tmp_path)
    assert plans == [LargePlan(10**9, tmp_path / "work", build_memory=2**31)]


def test_likeness_of_a_mixture_to_its_rows_is_shown(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    centres = rng.integers(0, 200, (10, 128))
    rows = centres[rng.integers(0, 10, 4000)] + rng.integers(0, 50, (4000, 128))
    np.save(tmp_path / "dsift480k_u8.npy", rows.astype(np.uint8))
    records = likeness(tmp_path, 32, n_queries=160)
    by_name = {record.name: record for record in records}
    nearest = by_name["distance of neighbour 10, mean"]
    assert nearest.drawn == pytest.approx(nearest.real, rel=0.15)
    assert nearest.drawn == pytest.approx(nearest.hashed, rel=0.1)
    assert by_name["codes in the query's bucket of 16 bits, mean"].real > 1
    assert len(table(records).splitlines()) == len(records) + 2
