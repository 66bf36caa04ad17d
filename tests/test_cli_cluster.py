"""`bitweigh cluster`: shards from the command line, as `bitweigh.cluster` makes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_cases import done, plain, run

from bitweigh import cluster
from bitweigh.cluster import PublishConflictError
from bitweigh.cluster.stores import FolderStore

CODES = np.random.default_rng(1).integers(0, 256, (300, 4), dtype=np.uint8)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, with codes 0 to 299 in `index` and in three `shards`."""
    monkeypatch.chdir(tmp_path)
    np.save("codes.npy", CODES)
    np.save("queries.npy", CODES[:20] ^ 1)
    np.save("few.npy", CODES[:5] ^ 255)
    np.save("ids.npy", np.arange(298, 303))
    done("build", "codes.npy", "--codes", "-o", "index")
    done("cluster", "build", "codes.npy", "--shards", "3", "-o", "shards")
    return tmp_path


def refused(*arguments: str) -> str:
    result = run(*arguments)
    assert result.exit_code in (1, 2)
    (line,) = plain(result.stderr).splitlines()
    return line


def test_build_publishes_the_first_version() -> None:
    told = done("cluster", "build", "codes.npy", "--rows-per-shard", "100", "-o", "new")
    assert told.startswith("new: version 1, 300 codes of 32 bits in 3 shards, in ")
    assert cluster.open("new").version == cluster.verify("new")
    shards = [shard.folder for shard in cluster.verify("new").shards]
    assert shards == [shard.folder for shard in cluster.verify("shards").shards]


def test_build_takes_bits_order_ids_and_options_of_shards() -> None:
    np.save("more.npy", np.arange(300, 600))
    options = ("--bits", "28", "--bitorder", "big", "--bands", "2", "--band-bits", "6")
    limits = ("--memory-limit", "1M", "--layout", "plain")
    np.save("narrow.npy", CODES & np.array([255, 255, 255, 240], np.uint8))
    done("cluster", "build", "narrow.npy", "--ids", "more.npy", *options, *limits, "-o", "new")
    version = cluster.verify("new")
    assert (version.n_bits, version.bitorder, version.next_id) == (28, "big", 600)
    assert version.options == cluster.ShardOptions(2, 6, 1 << 20, "plain")


def test_build_takes_several_files_and_their_ids() -> None:
    np.save("first.npy", np.arange(300))
    sources = ("codes.npy", "few.npy")
    ids = ("--ids", "first.npy", "--ids", "more.npy")
    np.save("more.npy", np.arange(1000, 1005))
    done("cluster", "build", *sources, *ids, "-o", "new")
    assert cluster.open("new").ids.tolist() == [*range(300), *range(1000, 1005)]


def test_build_reads_columns_of_parquet() -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    hashes = [code.tobytes() for code in CODES]
    Path("parts").mkdir()
    for number, rows in enumerate((slice(0, 100), slice(100, 300))):
        keys = np.arange(300)[rows] + 500
        table = pa.table({"hash": hashes[rows], "key": keys})
        pq.write_table(table, f"parts/{number}.parquet")
    files = ("parts/0.parquet", "parts/1.parquet")
    columns = ("--codes", "hash", "--ids", "key")
    for source in (files, ("parts",)):
        done("cluster", "build", *source, *columns, "--overwrite", "-o", "new")
        assert cluster.open("new").ids.tolist() == list(range(500, 800))
    assert "in one column: give --ids once" in refused(
        "cluster", "build", *files, *columns, "--ids", "key", "-o", "other"
    )
    told = json.loads(done("cluster", "plan", *files, "--codes", "hash", "--json"))
    assert (told["rows"], told["n_bits"]) == (300, 32)


def test_build_says_what_it_made_as_json() -> None:
    told = json.loads(done("cluster", "build", "codes.npy", "-o", "new", "--json"))
    assert told.pop("seconds") > 0
    assert told.pop("bytes") == cluster.verify("new").n_bytes
    assert told == {"url": "new", "version": 1, "rows": 300, "n_bits": 32, "shards": 1}


def test_update_adds_and_removes() -> None:
    told = done("cluster", "update", "shards", "--add", "few.npy", "--remove", "17,4")
    assert told.startswith("shards: version 2, 303 codes of 32 bits in 3 shards, in ")
    assert cluster.open("shards").ids.tolist() == [
        each for each in range(305) if each not in (17, 4)
    ]


def test_ids_to_remove_come_from_lists_files_and_a_pipe() -> None:
    np.save("gone.npy", np.array([10, 11]))
    Path("gone.txt").write_text("20\n21\n")
    lists = ("--remove", "1", "--remove", "2, 3")
    files = ("--remove", "gone.npy", "--remove", "gone.txt", "--remove", "-")
    result = run("cluster", "update", "shards", *lists, *files, stdin="30\n31\n")
    assert result.exit_code == 0, result.output
    gone = {1, 2, 3, 10, 11, 20, 21, 30, 31}
    assert set(range(300)) - set(cluster.open("shards").ids.tolist()) == gone


def test_update_replaces_rows_and_skips_missing_ids_if_told_to() -> None:
    new = ("--add", "few.npy", "--ids", "ids.npy")
    line = refused("cluster", "update", "shards", *new)
    assert "few.npy: ids must be new, but" in line
    assert "is in use; --replace replaces its code" in line
    done("cluster", "update", "shards", *new, "--replace")
    assert np.array_equal(cluster.open("shards").codes_of([298]), CODES[:1] ^ 255)
    line = refused("cluster", "update", "shards", "--remove", "7,999")
    assert line == "error: shards: id 999 is not in version 2; --ignore-missing skips"
    done("cluster", "update", "shards", "--remove", "7,999", "--ignore-missing")
    assert cluster.versions("shards") == [1, 2, 3]
    assert 7 not in cluster.open("shards")


def test_reshard_spreads_the_codes_anew() -> None:
    told = done("cluster", "reshard", "shards", "--shards", "5", "--workers", "2")
    assert told.startswith("shards: version 2, 300 codes of 32 bits in 5 shards")
    done("cluster", "build", "codes.npy", "--shards", "5", "-o", "new")
    assert cluster.verify("shards").shards == cluster.verify("new").shards


SEARCHES: list[tuple[str, ...]] = [
    ("queries.npy", "-k", "5"),
    ("queries.npy", "--radius", "9", "--format", "csv"),
    ("--id", "5", "--id", "7", "-k", "3"),
    ("--id", "5", "--radius", "12"),
    ("queries.npy", "--weights", "weights.npy", "--deny", "ids.npy", "--threads", "1"),
    ("queries.npy", "--allow", "ids.npy", "-k", "10", "--query-ids", "names.npy"),
    ("floats.npy", "-k", "2"),
    ("costs.npy", "--costs", "-k", "100"),
]


@pytest.mark.parametrize("arguments", SEARCHES, ids=" ".join)
def test_search_answers_as_one_index_does(arguments: tuple[str, ...]) -> None:
    rng = np.random.default_rng(3)
    np.save("weights.npy", rng.random(32))
    np.save("names.npy", np.arange(20) + 70)
    np.save("floats.npy", rng.standard_normal((3, 32)))
    np.save("costs.npy", rng.standard_normal((3, 32, 2)))
    expected = done("search", "index", *arguments)
    assert done("cluster", "search", "shards", *arguments) == expected


def test_search_writes_files_and_reads_a_pipe() -> None:
    told = done("cluster", "search", "shards", "queries.npy", "-k", "2", "-o", "found.npz")
    assert told.startswith("found.npz: 40 neighbours of 20 queries, in ")
    code = CODES[8].tobytes().hex()
    answer = json.loads(done("cluster", "search", "shards", "-", "-k", "1", stdin=code))
    assert answer == {"query": 0, "rank": 1, "id": 8, "distance": 0.0}


def test_an_older_version_is_searched_and_verified_if_told_to() -> None:
    done("cluster", "update", "shards", "--remove", "8")
    old = ("--version", "1")
    search = ("cluster", "search", "shards", "--id", "8", "-k", "1")
    assert done(*search, *old)
    assert "shards has no id 8" in refused(*search)
    assert "version 1, 300 codes in 3 shards" in done("cluster", "verify", "shards", *old)
    assert "shards has no version 7, the newest is 2" in refused(*search, "--version", "7")


def test_verify_tells_that_all_is_well() -> None:
    told = done("cluster", "verify", "shards")
    assert told.startswith("shards: version 1, 300 codes in 3 shards, nothing is damaged (")
    assert json.loads(done("cluster", "verify", "shards", "--json"))["sound"] is True


def test_damage_is_told_in_one_line() -> None:
    codes = next(Path("shards").rglob("codes-*.npy"))
    raw = codes.read_bytes()
    codes.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    line = refused("cluster", "verify", "shards")
    assert f"{codes.name}: the checksum does not match" in line
    next(Path("shards/versions").iterdir()).write_text("{}")
    assert "not a version of shards, or damaged" in refused("cluster", "search", "shards", "-")


def test_versions_are_listed() -> None:
    done("cluster", "update", "shards", "--remove", "8,9")
    version = cluster.verify("shards")
    lines = done("cluster", "versions", "shards").splitlines()
    assert "shards: codes of 32 bits" in lines[0]
    assert all(word in lines[2] for word in ("version", "created", "rows", "shards", "size"))
    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines[4:-1]]
    assert [row[0::2][:2] for row in cells] == [["1", "300"], ["2", "298"]]
    assert cells[1][1] == version.created
    (_, newest) = json.loads(done("cluster", "versions", "shards", "--json"))["versions"]
    assert newest == {
        "version": 2,
        "created": version.created,
        "rows": 298,
        "shards": 3,
        "bytes": version.n_bytes,
    }


def test_vacuum_deletes_what_is_not_kept() -> None:
    for each in (1, 2, 3):
        done("cluster", "update", "shards", "--remove", str(each))
    told = done("cluster", "vacuum", "shards")
    assert told == "shards: deleted 1 version and 1 shard\n"
    gone = json.loads(done("cluster", "vacuum", "shards", "--keep", "1", "--json"))
    assert gone["versions"] == [2, 3]
    assert cluster.versions("shards") == [4]
    cluster.verify("shards")


def test_plan_tells_what_a_cluster_would_take() -> None:
    expected = cluster.plan("shards", memory=2**30)
    assert done("cluster", "plan", "shards", "--memory", "1G") == f"{expected}\n"
    told = json.loads(done("cluster", "plan", "shards", "--memory", "1G", "--json"))
    assert told == {**expected._asdict(), "advice": expected.advice}
    asked = ("--rows", "100000000", "--bits", "64", "--shards", "4", "--nodes", "4", "--bands", "1")
    assert "100,000,000 codes of 64 bits in 4 shards" in done("cluster", "plan", *asked)
    assert "300 codes of 32 bits in 2 shards" in done(
        "cluster", "plan", "codes.npy", "--rows-per-shard", "150"
    )
    assert "305 codes" in done("cluster", "plan", "codes.npy", "few.npy")


WRONG: list[tuple[tuple[str, ...], str]] = [
    (("build", "codes.npy", "-o", "shards"), "shards has version 1; --overwrite adds one"),
    (("build", "nothing.npy", "-o", "new"), "nothing.npy: no such file"),
    (("build", "bits.npy", "-o", "new"), "has only zeros and ones, as unpacked bits would"),
    (("build", "floats.npy", "-o", "new"), "floats.npy: codes must be uint8"),
    (("build", "codes.npy", "--bits", "64", "-o", "new"), "these have 4; 25 to 32 bits would fit"),
    (("build", "codes.npy", "--bands", "40", "-o", "new"), "expected at most 32"),
    (("build", "codes.npy", "--ids", "few.npy", "-o", "new"), "ids"),
    (("build", "codes.npy", "--codes", "hash", "-o", "new"), "for parquet"),
    (
        ("build", "codes.npy", "--shards", "2", "--rows-per-shard", "9", "-o", "new"),
        "give --rows-per-shard or --shards, not both",
    ),
    (("build", "codes.npy", "--shards", "20000", "-o", "new"), "shards must be from 1 to 10000"),
    (("update", "shards"), "give --add FILE or --remove IDS, or both"),
    (("update", "shards", "--remove", "1", "--ids", "ids.npy"), "--ids goes with --add"),
    (("update", "shards", "--remove", "-", "--remove", "-"), "only one --remove can be -, stdin"),
    (("update", "shards", "--remove", "nothing.txt"), "nothing.txt: No such file"),
    (("update", "none", "--remove", "1"), "none has no versions of shards"),
    (("update", "shards", "--add", "wide.npy"), "wide.npy: codes must have shape"),
    (("reshard", "none", "--shards", "2"), "none has no versions of shards"),
    (("reshard", "shards"), "Missing option '--shards'"),
    (("search", "none", "queries.npy"), "none has no versions of shards"),
    (("search", "shards"), "give QUERIES, a file or - for stdin, or --id ID; not both"),
    (("search", "shards", "wide.npy"), "these have 8; 57 to 64 bits would fit"),
    (("verify", "none"), "none has no versions of shards"),
    (("versions", "none"), "none has no versions of shards"),
    (("vacuum", "shards", "--keep", "0"), "Invalid value for '--keep'"),
    (("plan",), "give INPUT, or the URL of shards, or --rows and --bits"),
    (("plan", "none"), "none: no such file or folder"),
    (("plan", "--rows", "5"), "--rows goes with --bits"),
    (("plan", "shards", "--bits", "32"), "options already: give --nodes and --memory only"),
    (("plan", "shards", "--nodes", "9"), "nodes must be from 1 to 3, got 9"),
    (("start",), "Missing argument 'URL'"),
]


@pytest.mark.parametrize(("arguments", "says"), WRONG, ids=str)
def test_a_mistake_is_told_in_one_line(arguments: tuple[str, ...], says: str) -> None:
    np.save("bits.npy", np.unpackbits(CODES, axis=1))
    np.save("floats.npy", CODES.astype(np.float32))
    np.save("wide.npy", np.tile(CODES, (1, 2)))
    before = sorted(Path("shards").rglob("*"))
    assert says in refused("cluster", *arguments)
    assert sorted(Path("shards").rglob("*")) == before
    assert not Path("none").exists()


def test_a_conflict_with_another_publisher_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def create(store: FolderStore, number: int, content: bytes) -> None:  # noqa: ARG001
        raise PublishConflictError(number)

    monkeypatch.setattr(FolderStore, "create_version", create)
    line = refused("cluster", "update", "shards", "--remove", "1")
    assert line.startswith("error: shards: version 2 was published by somebody else meanwhile")


def test_a_failure_of_an_object_store_is_told_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exceptions = pytest.importorskip("obstore.exceptions")

    def numbers(_: Any) -> list[int]:
        raise exceptions.GenericError("connection refused\nsource: many lines")

    monkeypatch.setattr(FolderStore, "version_numbers", numbers)
    assert refused("cluster", "versions", "shards") == "error: shards: connection refused"


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def numbers(_: Any) -> list[int]:
        raise AssertionError("a defect")

    monkeypatch.setattr(FolderStore, "version_numbers", numbers)
    assert isinstance(run("cluster", "versions", "shards").exception, AssertionError)
