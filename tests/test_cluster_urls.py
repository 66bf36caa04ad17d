"""Building shards from parquet files at URLs: which files a URL means, how they are read, errors.

The URLs are those of folders; obstore reads them as it reads objects in S3.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitweigh import VectorIndex, cluster
from bitweigh.cluster.url_sources import UrlSource, _RangeReader

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
obstore = pytest.importorskip("obstore")

RNG = np.random.default_rng(0)
CODES = RNG.integers(0, 256, (3000, 8), dtype=np.uint8)
IDS = RNG.permutation(10_000)[:3000]
FILES = {
    "part-0.parquet": slice(0, 1000),
    "part-1.parquet": slice(1000, 1700),
    "day=1/a.parquet": slice(1700, 2500),
    "day=2/a.parquet": slice(2500, 3000),
}


@pytest.fixture
def corpus(tmp_path: Path) -> str:
    """The URL of a folder of parquet files, with row groups of 300 rows and a column of text."""
    folder = tmp_path / "corpus"
    for name, rows in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        codes = [bytes(code) for code in CODES[rows]]
        text = [RNG.bytes(500) for _ in codes]
        table = pa.table({"code": codes, "key": IDS[rows], "text": text})
        pq.write_table(table, folder / name, row_group_size=300)
    (folder / "part-2.txt").write_text("not for us")
    return f"file://{folder}"


def built(source: Any, folder: Path, **options: Any) -> cluster.Version:
    return cluster.build(source, folder, ids="key", shards=3, **options)


def ids_of(*names: str) -> list[int]:
    return sorted(id_ for name in names for id_ in IDS[FILES[name]].tolist())


@pytest.mark.parametrize(
    ("url", "names"),
    [
        ("part-0.parquet", ["part-0.parquet"]),
        ("part-*.parquet", ["part-0.parquet", "part-1.parquet"]),
        ("part-?.*", None),
        ("part-[1-9].parquet", ["part-1.parquet"]),
        ("", ["part-0.parquet", "part-1.parquet"]),
        ("/", ["part-0.parquet", "part-1.parquet"]),
        ("day=1", ["day=1/a.parquet"]),
        ("day=*/*.parquet", ["day=1/a.parquet", "day=2/a.parquet"]),
        ("*/a.parquet", ["day=1/a.parquet", "day=2/a.parquet"]),
    ],
)
def test_a_url_means_a_file_a_pattern_or_what_is_directly_below_a_prefix(
    url: str, names: list[str] | None, corpus: str, tmp_path: Path
) -> None:
    whole = f"{corpus}/{url}" if url.strip("/") else corpus + url
    if names is None:
        with pytest.raises(ValueError, match=r"part-2\.txt: not a complete parquet file"):
            built(whole, tmp_path / "shards")
        return
    built(whole, tmp_path / "shards")
    assert cluster.open(tmp_path / "shards").ids.tolist() == ids_of(*names)


@pytest.mark.parametrize("workers", [1, 2])
def test_shards_from_urls_are_those_of_the_files(
    workers: int, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bitweigh.cluster.building._PIECE_BYTES", 16 * 700)
    urls = [f"{corpus}/part-*.parquet", f"{corpus}/day=1", f"{corpus}/day=2/a.parquet"]
    expected = cluster.build(CODES, tmp_path / "array", ids=IDS, shards=3)
    version = built(urls, tmp_path / "urls", workers=workers)
    assert version.shards == expected.shards
    files = [Path(f"{corpus.removeprefix('file://')}/{name}") for name in FILES]
    assert built(files, tmp_path / "files").shards == expected.shards


@pytest.mark.parametrize("descending", [False, True])
def test_rows_without_ids_are_numbered_in_the_order_of_the_names(
    descending: bool, corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_with_delimiter = obstore.list_with_delimiter

    def ordered(*arguments: Any) -> Any:
        listed = list_with_delimiter(*arguments)
        found = sorted(listed["objects"], key=lambda each: each["path"], reverse=descending)
        return {"common_prefixes": listed["common_prefixes"], "objects": found}

    monkeypatch.setattr(obstore, "list_with_delimiter", ordered)
    cluster.build(f"{corpus}/*.parquet", tmp_path / "shards", shards=2)
    opened = cluster.open(tmp_path / "shards")
    assert np.array_equal(opened.codes_of(np.arange(1700)), CODES[:1700])


def test_rows_at_a_url_are_added(corpus: str, tmp_path: Path) -> None:
    built(corpus, tmp_path / "shards")
    version = cluster.update(tmp_path / "shards", add=f"{corpus}/day=*/*.parquet", ids="key")
    assert version.shards == cluster.build(CODES, tmp_path / "all", ids=IDS, shards=3).shards


def test_only_the_columns_and_row_groups_that_are_needed_are_read(
    corpus: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = pickle.loads(pickle.dumps(UrlSource([f"{corpus}/part-0.parquet"], "code", "key")))
    size = Path(f"{corpus}/part-0.parquet".removeprefix("file://")).stat().st_size
    lengths = []
    get_range = obstore.get_range

    def counted(*arguments: Any, start: int, length: int) -> Any:
        lengths.append(length)
        return get_range(*arguments, start=start, length=length)

    monkeypatch.setattr(obstore, "get_range", counted)
    ((codes, ids),) = source.read(300, 600)
    assert np.array_equal(codes, CODES[300:600])
    assert np.array_equal(ids, IDS[300:600])
    # The footer, for which pyarrow reads 64 KiB, and a column each.
    assert len(lengths) <= 4
    assert sum(sorted(lengths)[:-1]) < 300 * 30
    assert max(lengths) <= 65536 < size


def test_a_reader_reads_on_where_it_stopped(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    reader = _RangeReader(obstore.store.from_url(f"file://{tmp_path}"), "file", 10)
    assert (reader.read(3), reader.read(2), reader.tell()) == (b"012", b"34", 5)
    assert (reader.seek(-4, 2), reader.read(), reader.read(1)) == (6, b"6789", b"")
    assert (reader.seek(2), reader.seek(1, 1), reader.read(100)) == (2, 3, b"3456789")


def test_vectors_at_urls_are_built_with_a_hasher(tmp_path: Path) -> None:
    vectors = RNG.standard_normal((500, 16)).astype(np.float32)
    like = VectorIndex(n_bits=16).fit(vectors)
    expected = cluster.build(vectors, tmp_path / "array", like=like, shards=2)
    lists = pa.array(list(vectors), pa.list_(pa.float32()))
    pq.write_table(pa.table({"embedding": lists}), tmp_path / "v.parquet", row_group_size=200)
    url = f"file://{tmp_path}/v.parquet"
    found = cluster.build(url, tmp_path / "url", like=like, vectors="embedding", shards=2)
    assert found.shards == expected.shards


def test_plan_knows_the_rows_of_files_at_urls(corpus: str) -> None:
    plan = cluster.plan(f"{corpus}/*.parquet", shards=2)
    assert (plan.rows, plan.n_bits, plan.exact) == (1700, 64, False)


@pytest.mark.parametrize(
    ("url", "error", "says"),
    [
        ("none.parquet", FileNotFoundError, r"none\.parquet: there is no such file"),
        ("none-*.parquet", FileNotFoundError, r"none-\*\.parquet: no file has such a name"),
        ("empty", FileNotFoundError, r"empty: no file there ends in \.parquet, which is"),
        ("part-2.txt", (FileNotFoundError, ValueError), r"part-2\.txt: no"),
        ("damaged.parquet", ValueError, r"damaged\.parquet: not a complete parquet file"),
        ("other.parquet", ValueError, r"other\.parquet: has no column 'code', only 'hash', 'key'"),
        ("nulls.parquet", ValueError, r"nulls\.parquet, row group 0: .*null"),
    ],
)
def test_a_url_that_cannot_be_read_is_named(
    url: str, error: type[Exception], says: str, corpus: str, tmp_path: Path
) -> None:
    folder = tmp_path / "corpus"
    (folder / "empty").mkdir()
    (folder / "damaged.parquet").write_bytes(b"PAR1 and nothing else")
    pq.write_table(pa.table({"hash": [b"ab"], "key": [1]}), folder / "other.parquet")
    pq.write_table(pa.table({"code": [b"ab", None], "key": [1, 2]}), folder / "nulls.parquet")
    with pytest.raises(error, match=says):
        built(f"{corpus}/{url}", tmp_path / "shards", n_bits=16)
    assert cluster.versions(tmp_path / "shards") == []


def test_urls_and_paths_do_not_mix(corpus: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="files of this machine or URLs, not both"):
        built([f"{corpus}/part-0.parquet", tmp_path / "b.parquet"], tmp_path / "shards")


def test_ids_of_files_at_urls_are_in_a_column(corpus: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ids of files at URLs are in a column: give its name"):
        cluster.build(corpus, tmp_path / "shards", ids=np.arange(1700))


def test_a_url_of_no_object_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gopher://host: not the URL of an object store: "):
        built("gopher://host/codes.parquet", tmp_path / "shards")


def test_without_obstore_the_extra_is_named(
    corpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(ImportError, match=r"this needs obstore: pip install 'bitweigh\[cluster\]'"):
        built(corpus, tmp_path / "shards")


def test_a_pattern_means_files_of_this_machine_too(corpus: str, tmp_path: Path) -> None:
    folder = Path(corpus.removeprefix("file://"))
    built(folder / "day=*" / "*.parquet", tmp_path / "shards")
    assert cluster.open(tmp_path / "shards").ids.tolist() == ids_of(
        "day=1/a.parquet", "day=2/a.parquet"
    )
    assert cluster.plan(str(folder / "day=*" / "*.parquet"), shards=2).rows == 1300
    with pytest.raises(FileNotFoundError, match=r"none-\*: no file has such a name"):
        built(folder / "none-*", tmp_path / "shards")


def test_a_file_whose_name_has_wildcards_is_itself(corpus: str, tmp_path: Path) -> None:
    folder = Path(corpus.removeprefix("file://"))
    (folder / "part-0.parquet").rename(folder / "part-[1].parquet")
    built(folder / "part-[1].parquet", tmp_path / "shards")
    assert cluster.open(tmp_path / "shards").ids.tolist() == ids_of("part-0.parquet")
