"""`bitweigh cluster`: shards from the command line, as `bitweigh.cluster` makes them."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from cli_cases import done, plain, run

from bitweigh import cluster
from bitweigh.cluster import IncompleteError, Missing, PublishConflictError
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
    assert told == {
        "url": "new",
        "version": 1,
        "rows": 300,
        "kind": "codes",
        "n_bits": 32,
        "shards": 1,
    }


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


def test_vacuum_deletes_what_killed_builds_have_left() -> None:
    staged = Path("shards/staging/build-0")
    staged.mkdir()
    (staged / "piece-000000").write_bytes(b"rows")
    hour_ago = time.time() - 3600
    for path in (staged / "piece-000000", staged):
        os.utime(path, (hour_ago, hour_ago))
    assert done("cluster", "vacuum", "shards") == "shards: deleted 0 versions and 0 shards\n"
    told = done("cluster", "vacuum", "shards", "--staged-older-than", "59m")
    assert told == "shards: deleted 0 versions and 0 shards, and what 1 build left\n"
    assert not staged.exists()


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


class Connected:
    """Calls of `cluster.connect`, which opens the shards here."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.closed = 0

    def __call__(self, name: str, *, address: str) -> Any:
        self.calls.append((name, address))
        if name != "wiki":
            raise KeyError(f"no cluster {name!r}: start it first")
        shards: Any = cluster.open("shards")
        shards.close = lambda: setattr(self, "closed", self.closed + 1)
        return shards


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> Connected:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    found = Connected()
    monkeypatch.setattr(cluster, "connect", found)
    return found


def test_search_asks_a_running_cluster_by_its_name(connected: Connected) -> None:
    expected = done("search", "index", "queries.npy", "-k", "4", "--hamming")
    options = ("queries.npy", "-k", "4", "--hamming")
    assert done("cluster", "search", "wiki", *options) == expected
    assert done("cluster", "search", "wiki", *options, "--address", "first:6379") == expected
    assert connected.calls == [("wiki", "auto"), ("wiki", "first:6379")]
    assert connected.closed == 2


@pytest.mark.parametrize("path", ["wiki", "./wiki", "s3://wiki/x"])
def test_a_folder_or_url_is_never_taken_for_the_name_of_a_cluster(
    connected: Connected, path: str
) -> None:
    Path("shards").rename("wiki")
    run("cluster", "search", path, "queries.npy")
    assert connected.calls == []


@pytest.mark.usefixtures("connected")
def test_what_is_neither_a_folder_nor_a_cluster_is_told_in_one_line() -> None:
    line = refused("cluster", "search", "none", "queries.npy")
    assert line.startswith("error: there is no folder none, nor a cluster of that name: no cluster")


def test_a_shard_that_a_cluster_lacks_is_told_in_one_line(
    connected: Connected, monkeypatch: pytest.MonkeyPatch
) -> None:
    def search(*_: Any, **__: Any) -> Any:
        raise IncompleteError([Missing(2, 100, "its holder has died")], 300)

    monkeypatch.setattr(cluster.Shards, "search", search)
    line = refused("cluster", "search", "wiki", "queries.npy")
    assert "shard 2 (100 of 300 rows): its holder has died" in line
    assert connected.closed == 1


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
    (("build", "codes.npy", "--workers", "0", "-o", "new"), "0 is neither a number from 1 to 256"),
    (("reshard", "shards", "--shards", "2", "--workers", "Ray"), "Ray is neither a number from 1"),
    (("update", "shards"), "give --add FILE or --remove IDS, or both"),
    (("update", "shards", "--remove", "1", "--ids", "ids.npy"), "--ids goes with --add"),
    (("update", "shards", "--remove", "-", "--remove", "-"), "only one --remove can be -, stdin"),
    (("update", "shards", "--remove", "nothing.txt"), "nothing.txt: No such file"),
    (("update", "none", "--remove", "1"), "none has no versions of shards"),
    (("update", "shards", "--add", "wide.npy"), "wide.npy: codes must have shape"),
    (("reshard", "none", "--shards", "2"), "none has no versions of shards"),
    (("reshard", "shards"), "Missing option '--shards'"),
    (("search", "./none", "queries.npy"), "none has no versions of shards"),
    (("search", "no-ne", "queries.npy"), "no-ne has no versions of shards"),
    (("search", "none", "queries.npy", "--version", "2"), "--version goes with a folder or URL"),
    (("search", "shards"), "give QUERIES, a file or - for stdin, or --id ID; not both"),
    (("search", "shards", "wide.npy"), "these have 8; 57 to 64 bits would fit"),
    (("verify", "none"), "none has no versions of shards"),
    (("versions", "none"), "none has no versions of shards"),
    (("vacuum", "shards", "--keep", "0"), "Invalid value for '--keep'"),
    (("vacuum", "shards", "--staged-older-than", "soon"), "soon is not an age"),
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


def fake_ray(monkeypatch: pytest.MonkeyPatch, **attributes: Any) -> None:
    ray = ModuleType("ray")
    facts: dict[str, Any] = {"__version__": "2.60.0", "is_initialized": lambda: False}
    for name, value in (facts | attributes).items():
        setattr(ray, name, value)
    monkeypatch.setitem(sys.modules, "ray", ray)


CHANGES = [
    ("build", "codes.npy", "-o", "new"),
    ("update", "shards", "--remove", "1"),
    ("reshard", "shards", "--shards", "2"),
]


@pytest.mark.parametrize("arguments", CHANGES, ids=str)
def test_ray_builds_where_an_address_says_and_is_left_then(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    fake_ray(
        monkeypatch,
        init=lambda address, **_: seen.append(address),
        shutdown=lambda: seen.append("left"),
    )

    def on_ray(function: Any, tasks: Any) -> Any:
        seen.append("ray")
        return ((number, function(*task)) for number, task in enumerate(tasks))

    monkeypatch.setattr("bitweigh.cluster.tasks._on_ray", on_ray)
    done("cluster", *arguments, "--workers", "ray", "--address", "head:6379")
    assert (seen[0], seen[1], seen[-1]) == ("head:6379", "ray", "left")


@pytest.mark.parametrize("arguments", CHANGES, ids=str)
def test_without_a_ray_cluster_nothing_is_changed(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: Any) -> None:
        raise ConnectionError("Could not find any running Ray instance.")

    fake_ray(monkeypatch, init=init)
    line = refused("cluster", *arguments, "--workers", "ray")
    assert "Could not find any running Ray instance" in line
    monkeypatch.setitem(sys.modules, "ray", None)
    line = refused("cluster", *arguments, "--workers", "ray")
    assert "this needs ray: pip install 'bitweigh[cluster]'" in line
    assert cluster.versions("shards") == [1]
    assert not Path("new").exists()


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


def test_shards_like_an_index_of_vectors_answer_as_it_does() -> None:
    vectors = np.random.default_rng(2).standard_normal((200, 16)).astype(np.float32)
    np.save("vectors.npy", vectors)
    np.save("more.npy", -vectors[:3])
    done("build", "vectors.npy", "--rerank", "float32", "-o", "vector-index")
    like = ("--like", "vector-index")
    told = done("cluster", "build", "vectors.npy", *like, "--shards", "3", "-o", "vector-shards")
    assert told.startswith("vector-shards: version 1, 200 vectors of 16 bits in 3 shards, in ")
    search = ("vectors.npy", "-k", "4", "--candidates", "50")
    found = done("cluster", "search", "vector-shards", *search)
    assert found == done("search", "vector-index", *search)
    by_id = ("--id", "7", "--radius", "3")
    assert done("cluster", "search", "vector-shards", *by_id) == done(
        "search", "vector-index", *by_id
    )
    done("cluster", "update", "vector-shards", "--add", "more.npy")
    done("add", "vector-index", "more.npy")
    found = done("cluster", "search", "vector-shards", *search)
    assert found == done("search", "vector-index", *search)
    assert "--candidates is for indexes of vectors" in refused(
        "cluster", "search", "shards", "queries.npy", "--candidates", "50"
    )


def test_columns_of_vectors_and_what_is_no_template_are_checked() -> None:
    np.save("vectors.npy", np.eye(16, dtype=np.float32))
    done("build", "vectors.npy", "-o", "vector-index")
    build = ("cluster", "build", "vectors.npy", "-o", "new", "--like")
    assert "this is an index of codes" in refused(*build, "index")
    assert "there is no such folder" in refused(*build, "nothing")
    assert "those of `like`" in refused(*build, "vector-index", "--bits", "16")
    assert "give vectors=" in refused(*build, "vector-index", "--codes", "x")
    assert "give codes=" in refused("cluster", "build", "codes.npy", "-o", "new", "--vectors", "x")
