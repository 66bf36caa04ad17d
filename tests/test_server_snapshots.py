"""Snapshots over HTTP: taken, downloaded, restored; damaged ones replace nothing."""

from __future__ import annotations

import io
import sqlite3
import tarfile
import time
from collections.abc import Iterator

import pytest
from server_cases import TAR, Api, code64, exactly


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with Api(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture
def names() -> Iterator[str]:
    """Names of collections that no other test has."""
    return (f"own{time.perf_counter_ns()}" for _ in iter(int, 1))


def test_a_snapshot_brings_back_what_there_was(api: Api, names: Iterator[str]) -> None:
    name, other = next(names), next(names)
    api.create(name, kind="codes", n_bits=8)
    api.upsert(name, [{"id": n, "code": code64([n]), "payload": {"n": n}} for n in range(9)])
    taken = api.done("POST", f"{name}/snapshots")
    assert [one["name"] for one in api.done("GET", f"{name}/snapshots")["snapshots"]] == [
        taken["name"]
    ]
    before = api.done("GET", f"{name}/items?values=true")["items"]
    api.done("POST", f"{name}/items/remove", {"ids": [1, 2]})
    restored = api.done("POST", f"{name}/restore", {"snapshot": taken["name"]})
    assert restored["items"] == 9
    tar = api.ask("GET", f"{name}/snapshots/{taken['name']}").content
    assert len(tar) == taken["bytes"]
    assert api.done("POST", f"{other}/restore", content=tar, headers=TAR)["items"] == 9
    for one in (name, other):
        assert api.done("GET", f"{one}/items?values=true")["items"] == before
        assert exactly(api.search(one, code=code64([3]), k=9)["hits"])[0] == (3, (0.0).hex())
    api.done("DELETE", f"{name}/snapshots/{taken['name']}")
    assert api.ask("GET", f"{name}/snapshots/{taken['name']}").status_code == 404


def test_a_snapshot_that_cannot_be_opened_replaces_nothing(api: Api, names: Iterator[str]) -> None:
    name = next(names)
    api.create(name, kind="codes", n_bits=8)
    api.upsert(name, [{"id": 1, "code": code64([1])}])
    taken = api.done("POST", f"{name}/snapshots")
    tar = api.ask("GET", f"{name}/snapshots/{taken['name']}").content
    folder = api.service.store.folder / "taken-apart"
    damages = {
        "no definition": "DELETE FROM facts WHERE name = 'definition'",
        "a definition of nothing": "UPDATE facts SET value = '{}' WHERE name = 'definition'",
        "values of another length": "UPDATE items SET value = x'0102', seq = 99",
        "a change from nowhere": "UPDATE facts SET value = 'x' WHERE name = 'seq'",
        "sql that runs later": "CREATE TRIGGER t AFTER UPDATE ON items BEGIN SELECT 1; END",
    }
    for damage, statement in damages.items():
        with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
            archive.extract("record.sqlite", folder, filter="data")
        with sqlite3.connect(folder / "record.sqlite") as record:
            record.execute(statement)
        record.close()
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            archive.add(folder / "record.sqlite", "record.sqlite")
        answer = api.ask("POST", f"{name}/restore", content=out.getvalue(), headers=TAR)
        assert answer.status_code == 422, (damage, answer.text)
        assert "not a snapshot" in answer.json()["detail"]
        assert api.done("GET", f"{name}/items/1")["code"] == code64([1])
