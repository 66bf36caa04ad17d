"""Shards in S3, as moto answers it: builds, conflicts, and a store that fails now and then."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bitweigh import cluster
from bitweigh.cluster import PublishConflictError
from bitweigh.cluster.object_store import ObjectStore

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.xdist_group("s3"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

CODES = np.random.default_rng(0).integers(0, 256, (2000, 8), dtype=np.uint8)
_names = itertools.count()


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def url(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    import boto3

    settings = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ALLOW_HTTP": "true",
        "BITWEIGH_CACHE": str(tmp_path / "cache"),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    bucket = f"bucket-{next(_names)}"
    boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=bucket)
    return f"s3://{bucket}/some/shards"


def test_shards_in_s3_are_those_of_a_folder(url: str, tmp_path: Path) -> None:
    version = cluster.build(CODES, url, shards=3)
    assert version.shards == cluster.build(CODES, tmp_path / "local", shards=3).shards
    cluster.update(url, remove=[1, 2, 3])
    assert cluster.versions(url) == [1, 2]
    costs = np.random.default_rng(1).standard_normal((3, 64, 2))
    expected = cluster.open(tmp_path / "local").search(costs, 20, deny=[1, 2, 3])
    found = cluster.open(url).search(costs, 20)
    assert np.array_equal(expected.ids, found.ids)
    assert cluster.verify(url).rows == 1997
    assert cluster.vacuum(url, keep=1).versions == [1]
    assert cluster.open(url).version == cluster.verify(url)


def test_of_several_publishers_one_wins(url: str) -> None:
    cluster.build(CODES[:100], url, shards=2)
    content = ObjectStore(url).read_version(1)

    def publish(number: int) -> bool:
        try:
            ObjectStore(url).create_version(2, content + b" " * number)
        except PublishConflictError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(publish, range(8))) == 1


@pytest.mark.parametrize("failing", range(1, 12))
def test_where_a_write_fails_the_old_version_stays(
    url: str, failing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.build(CODES[:500], url, shards=2)
    import obstore

    writes = itertools.count(1)
    put = obstore.put

    def sometimes(*arguments: Any, **options: Any) -> Any:
        if next(writes) == failing:
            raise OSError("the store is out of order")
        return put(*arguments, **options)

    monkeypatch.setattr(obstore, "put", sometimes)
    try:
        cluster.update(url, add=CODES[500:700], remove=[3])
        failed = False
    except OSError:
        failed = True
    monkeypatch.setattr(obstore, "put", put)
    assert failed == (next(writes) - 1 >= failing)
    assert cluster.versions(url) == ([1] if failed else [1, 2])
    assert cluster.verify(url).rows == (500 if failed else 699)
    # The same change succeeds once the store is in order.
    if failed:
        assert cluster.update(url, add=CODES[500:700], remove=[3]).rows == 699
        assert cluster.verify(url).rows == 699


@pytest.fixture
def corpus(url: str, endpoint: str, tmp_path: Path) -> str:
    """The URL of a prefix with CODES in two parquet files, in the bucket of `url`."""
    import boto3
    import pyarrow as pa
    import pyarrow.parquet as pq

    bucket = url.split("/")[2]
    client = boto3.client("s3", endpoint_url=endpoint)
    for number, codes in enumerate(np.array_split(CODES, 2)):
        first = 1000 * number
        ids = np.arange(first, first + len(codes))
        table = pa.table({"hash": [bytes(code) for code in codes], "key": ids})
        pq.write_table(table, tmp_path / "part.parquet", row_group_size=300)
        client.upload_file(str(tmp_path / "part.parquet"), bucket, f"day={number}/part.parquet")
    return f"s3://{bucket}"


@pytest.mark.parametrize("workers", [1, 2])
def test_parquet_files_in_s3_are_built_and_added(
    corpus: str, url: str, workers: int, tmp_path: Path
) -> None:
    expected = cluster.build(CODES, tmp_path / "local", shards=3)
    columns: dict[str, Any] = {"codes": "hash", "ids": "key", "workers": workers}
    assert cluster.build(f"{corpus}/day=*/*.parquet", url, shards=3, **columns).shards == (
        expected.shards
    )
    cluster.build(f"{corpus}/day=0", url, shards=3, overwrite=True, **columns)
    version = cluster.update(url, add=f"{corpus}/day=1/part.parquet", **columns)
    assert version.shards == expected.shards


def test_what_is_not_in_s3_is_named(corpus: str, url: str) -> None:
    for missing in ("day=2/part.parquet", "day=2", "day=2/*.parquet"):
        with pytest.raises(FileNotFoundError, match=r"day=2.*: (there is )?no "):
            cluster.build(f"{corpus}/{missing}", url, codes="hash")
    with pytest.raises(FileNotFoundError, match=r"s3://nowhere/a\.parquet: there is no such file"):
        cluster.build("s3://nowhere/a.parquet", url, codes="hash")
