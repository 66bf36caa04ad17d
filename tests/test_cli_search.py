"""Options of `bitweigh search`: radius, ids, candidates, stdin, names of queries."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import done, plain, run

import bitweigh

CODES = np.random.default_rng(1).integers(0, 256, (300, 4), dtype=np.uint8)
QUERIES = CODES[:4] ^ 3
VECTORS = np.random.default_rng(5).standard_normal((200, 16)).astype(np.float32)

Rows = list[tuple[int, int, int, float]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Indexes of codes, of vectors, and of vectors with rerank; no test changes them."""
    folder = tmp_path_factory.mktemp("search")
    np.save(folder / "codes.npy", CODES)
    np.save(folder / "queries.npy", QUERIES)
    np.save(folder / "vectors.npy", VECTORS)
    done("build", folder / "codes.npy", "--codes", "-o", folder / "index")
    hashed = ("build", folder / "vectors.npy", "--hasher", "lsh", "--bits", "64")
    done(*hashed, "--rerank", "float32", "-o", folder / "near")
    done(*hashed, "-o", folder / "hashed")
    return folder


@pytest.fixture(autouse=True)
def here(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folders)


def found(*arguments: str, stdin: str | bytes | None = None) -> Rows:
    lines = done("search", *arguments, stdin=stdin).splitlines()
    rows = [json.loads(line) for line in lines]
    assert all(list(row) == ["query", "rank", "id", "distance"] for row in rows)
    return [(row["query"], row["rank"], row["id"], row["distance"]) for row in rows]


def refused(*arguments: str, stdin: str | bytes | None = None) -> str:
    result = run("search", *arguments, stdin=stdin)
    assert result.exit_code in (1, 2)
    (line,) = plain(result.stderr).splitlines()
    return line


def hamming(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return bitweigh.costs.hamming(rows, 32)


def npy(array: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def arrays_in(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with np.load(path) as arrays:
        return dict(arrays)


def test_a_radius_finds_all_within_it() -> None:
    rows = found("index", "queries.npy", "--radius", "9")
    expected = bitweigh.load("index").range_search(hamming(QUERIES), 9.0)
    assert [row[2] for row in rows] == expected.ids.tolist()
    assert [row[3] for row in rows] == expected.distances.tolist()
    assert [row[0] for row in rows] == np.repeat(np.arange(4), np.diff(expected.lims)).tolist()


def test_a_radius_of_vectors_is_a_true_distance() -> None:
    rows = found("near", "vectors.npy", "--radius", "2.5")
    distances = np.linalg.norm(VECTORS[:, np.newaxis] - VECTORS, axis=2)
    assert len(rows) == int((distances <= 2.5).sum())


def test_a_radius_that_finds_nothing_gives_an_empty_answer() -> None:
    assert found("index", "queries.npy", "--radius", "-1") == []


def test_an_npz_file_of_a_radius_has_the_limits_of_each_query(tmp_path: Path) -> None:
    many = np.tile(QUERIES, (100, 1))
    np.save(tmp_path / "many.npy", many)
    done("search", "index", tmp_path / "many.npy", "--radius", "9", "-o", tmp_path / "found.npz")
    stored = arrays_in(tmp_path / "found.npz")
    expected = bitweigh.load("index").range_search(hamming(many), 9.0)
    assert np.array_equal(stored["lims"], expected.lims)
    assert np.array_equal(stored["ids"], expected.ids)
    assert np.array_equal(stored["distances"], expected.distances)


def test_rows_are_searched_for_by_id_and_leave_themselves_out() -> None:
    rows = found("index", "--id", "7", "--id", "5", "-k", "3")
    expected = bitweigh.load("index").search_by_id([7, 5], 3)
    assert [row[0] for row in rows] == [7, 7, 7, 5, 5, 5]
    assert [row[2] for row in rows] == expected.ids.reshape(-1).tolist()
    assert [row[3] for row in rows] == expected.distances.reshape(-1).tolist()


def test_a_row_behind_many_equal_ones_still_gets_k_others(tmp_path: Path) -> None:
    np.save(tmp_path / "same.npy", np.zeros((10, 4), np.uint8))
    done("build", tmp_path / "same.npy", "--codes", "-o", tmp_path / "same")
    assert [row[2] for row in found(str(tmp_path / "same"), "--id", "9", "-k", "3")] == [0, 1, 2]


def test_a_row_is_not_within_its_own_radius() -> None:
    rows = found("index", "--id", "7", "--id", "5", "--radius", "9")
    both = bitweigh.load("index").range_search(hamming(CODES[[7, 5]]), 9.0)
    expected = [
        (query, found_id)
        for query, found_id in zip(
            np.repeat([7, 5], np.diff(both.lims)).tolist(), both.ids.tolist(), strict=True
        )
        if query != found_id
    ]
    assert [(row[0], row[2]) for row in rows] == expected


def test_rows_by_id_are_filtered() -> None:
    rows = found("index", "--id", "7", "-k", "2", "--allow", "-", stdin="7\n20\n30\n40\n")
    assert {row[2] for row in rows} < {20, 30, 40}


def test_vectors_that_are_kept_are_searched_for_by_id() -> None:
    distances = np.linalg.norm(VECTORS - VECTORS[3], axis=1)
    rows = found("near", "--id", "3", "-k", "5", "--candidates", "200")
    assert [row[2] for row in rows] == np.argsort(distances)[1:6].tolist()


def test_more_candidates_find_nearer_vectors() -> None:
    distances = np.linalg.norm(VECTORS[:, np.newaxis] - VECTORS, axis=2)
    best = np.argsort(distances, axis=1)[:, :5].reshape(-1).tolist()
    all_ranked = found("near", "vectors.npy", "-k", "5", "--candidates", "200")
    few_ranked = found("near", "vectors.npy", "-k", "5", "--candidates", "5")
    assert [row[2] for row in all_ranked] == best
    assert [row[2] for row in few_ranked] != best


def test_queries_keep_the_ids_of_a_file() -> None:
    rows = found("index", "queries.npy", "-k", "2", "--query-ids", "-", stdin="9\n8\n8\n70\n")
    assert [row[0] for row in rows] == [9, 9, 8, 8, 8, 8, 70, 70]


def test_queries_keep_the_ids_of_a_column(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"code": [code.tobytes() for code in QUERIES], "key": [40, 30, 20, 10]}
    pq.write_table(pa.table(columns), tmp_path / "queries.parquet")
    rows = found("index", str(tmp_path / "queries.parquet"), "-k", "1", "--id-column", "key")
    assert [row[0] for row in rows] == [40, 30, 20, 10]


def test_an_npz_file_has_the_ids_of_the_queries(tmp_path: Path) -> None:
    done("search", "index", "--id", "7", "--id", "5", "-k", "2", "-o", tmp_path / "found.npz")
    stored = arrays_in(tmp_path / "found.npz")
    assert stored["queries"].tolist() == [7, 5]
    assert stored["ids"].shape == stored["distances"].shape == (2, 2)


HEX = "\n".join(code.tobytes().hex() for code in QUERIES)
FLOATS = np.random.default_rng(3).standard_normal((4, 32))
SPACED = "\n".join(" ".join(map(str, row)) for row in FLOATS.tolist())


@pytest.mark.parametrize(
    ("stdin", "expected"),
    [
        (npy(QUERIES), hamming(QUERIES)),
        (HEX, hamming(QUERIES)),
        (HEX.upper().replace("\n", "\n\n") + "\n", hamming(QUERIES)),
        (npy(FLOATS), bitweigh.costs.inner_product(FLOATS)),
        (SPACED, bitweigh.costs.inner_product(FLOATS)),
        (SPACED.replace(" ", ", "), bitweigh.costs.inner_product(FLOATS)),
        (npy(QUERIES[0]), hamming(QUERIES[:1])),
    ],
    ids=["npy", "hex", "hex with gaps", "npy of floats", "numbers", "commas", "one query"],
)
def test_queries_come_from_stdin(stdin: str | bytes, expected: np.ndarray[Any, Any]) -> None:
    rows = found("index", "-", "-k", "3", stdin=stdin)
    answer = bitweigh.load("index").search(expected, 3)
    assert [row[2] for row in rows] == answer.ids.reshape(-1).tolist()
    assert [row[3] for row in rows] == answer.distances.reshape(-1).tolist()


def test_vectors_come_from_stdin_as_text() -> None:
    text = "\n".join(" ".join(map(str, row)) for row in VECTORS[:3].tolist())
    assert [row[2] for row in found("near", "-", "-k", "1", stdin=text)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("stdin", "says"),
    [
        ("", "stdin: there are no queries; give one per line"),
        ("00112233\n0011\n", "stdin, line 2: expected a code of 8 hex digits, got '0011'"),
        ("hello\n", "stdin, line 1: expected a code of 8 hex digits, got 'hello'"),
        ("1 2\n\n1 2 3\n", "stdin, line 3: expected 2 numbers, as in the first line, got 3"),
        ("1 two\n", "stdin, line 1: expected numbers: could not convert string to float: 'two'"),
        ("1 2\n", "stdin: float queries have one number for each of the 32 bits, got 2"),
        (b"\xff\xfe", "stdin: expected an npy file, or text with one query per line"),
        (npy(QUERIES)[:-1], "stdin: truncated, or not an npy file"),
        (npy(np.array(["a"])), "stdin: expected rows of numbers"),
        (npy(np.array([None])), "stdin: truncated, or not an npy file of numbers"),
    ],
    ids=["none", "short", "word", "ragged", "no number", "width", "bytes", "cut", "text", "pickle"],
)
def test_wrong_stdin_is_told_in_one_line(stdin: str | bytes, says: str) -> None:
    assert says in refused("index", "-", stdin=stdin)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("index", "queries.npy", "-k", "3", "--radius", "1"), "give -k or --radius, not both"),
        (("index", "queries.npy", "--radius", "nan"), "Invalid value for '--radius'"),
        (("index", "queries.npy", "--radius", "99", "--limit", "3"), "has more than limit=3 codes"),
        (("index", "queries.npy", "--limit", "3"), "--limit goes with --radius"),
        (("index", "queries.npy", "--json", "--format", "csv"), "give --format jsonl"),
        (("index", "queries.npy", "--radius", "1", "-o", "x.npy"), "x.npy: answers to --radius"),
        (("index", "queries.npy", "--id", "1"), "or --id ID; not both"),
        (("index", "--id", "5000"), "index has no id 5000: give --id an id of the index"),
        (("index", "--id", "-1"), "Invalid value for '--id'"),
        (("index", "--id", "1", "--costs"), "leave out options of QUERIES"),
        (("index", "queries.npy", "--candidates", "9"), "expected at least -k, which is 10, got 9"),
        (("index", "queries.npy", "--candidates", "20"), "this one has codes"),
        (("hashed", "vectors.npy", "--candidates", "20"), "built with --rerank"),
        (("near", "vectors.npy", "--candidates", "20", "--radius", "1"), "goes with -k"),
        (("hashed", "--id", "1"), "hashed keeps no vectors to look up by --id"),
        (("index", "-", "--allow", "-"), "only one of QUERIES and the options can be -"),
        (("index", "-", "--member", "a"), "--member are for files, not for stdin"),
        (("index", "queries.npy", "--query-ids", "no.txt"), "no.txt: No such file"),
        (("index", "queries.npy", "--query-ids", "codes.npy"), "codes.npy"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...], says: str) -> None:
    assert says in refused(*arguments)


def test_as_many_ids_as_queries_are_needed() -> None:
    line = refused("index", "queries.npy", "--query-ids", "-", stdin="1\n2\n")
    assert "expected 4 ids, one for each row, got 2" in line
