"""Who may have the folder of a server: one that writes, or several that only read."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from benchmarks.server.processes import ServerProcess
from server_folders import (
    BY_HAND,
    PATH,
    READ_ONLY,
    SERVE,
    check_whole,
    collection_folder,
    disk_of,
    make_killed,
)

from bitweigh.server import App, FolderInUseError, Settings
from bitweigh.server.service import Service
from bitweigh.server.store import Store


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_killed(tmp_path_factory.mktemp("killed"))


@pytest.fixture
def data(killed: Path, tmp_path: Path) -> Path:
    shutil.copytree(killed, tmp_path / "data")
    return tmp_path / "data"


def test_a_second_server_is_refused_and_told_who_has_the_folder(data: Path) -> None:
    store = Store(data, BY_HAND)
    done = subprocess.run(
        [*SERVE, str(data), "--port", "0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == f"error: {data}: process {os.getpid()} serves this folder already\n"
    with pytest.raises(FolderInUseError, match=f"process {os.getpid()} serves"):
        Store(data, READ_ONLY)
    store.close()


def test_servers_that_only_read_share_a_folder_and_keep_a_writer_out(data: Path) -> None:
    first, second = Store(data, READ_ONLY), Store(data, READ_ONLY)
    with pytest.raises(FolderInUseError, match=f"process {os.getpid()} serves"):
        Store(data, BY_HAND)
    first.close()
    second.close()
    Store(data, BY_HAND).close()


def tree(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path.relative_to(folder)): (
            path.stat().st_mtime_ns,
            path.stat().st_size,
            path.read_bytes() if path.is_file() else b"",
        )
        for path in [folder, *folder.rglob("*")]
    }


async def asked(store: Store, settings: Settings, *requests: tuple[str, str, Any]) -> list[int]:
    """The statuses of requests to an application; one that is closed afterwards."""
    service = Service(store, settings)
    transport = httpx.ASGITransport(App(service))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        statuses = [
            (await client.request(method, path, json=body)).status_code
            for method, path, body in requests
        ]
    service.close()
    return statuses


CHANGES = [
    ("PUT", f"{PATH}/items", {"items": [{"id": 1, "code": "AAAAAAAAAAA="}]}),
    ("PUT", f"{PATH}/items", {"items": [{"key": "new", "code": "AAAAAAAAAAA="}]}),
    ("POST", f"{PATH}/items/remove", {"ids": [1]}),
    ("POST", f"{PATH}/import", {}),
    ("POST", f"{PATH}/fit", {}),
    ("POST", f"{PATH}/snapshots", {}),
    ("DELETE", f"{PATH}/snapshots/20260101T000000Z-1.tar", None),
    ("POST", f"{PATH}/restore", {"snapshot": "20260101T000000Z-1.tar"}),
    ("DELETE", PATH, None),
    ("PUT", "/v1/collections/other", {"kind": "codes", "n_bits": 8}),
]
QUESTIONS = [
    ("POST", f"{PATH}/search", {"id": 30, "k": 5, "payload": True}),
    ("POST", f"{PATH}/search", {"id": 30, "k": 5, "filter": {"version": 1}}),
    ("GET", f"{PATH}/items?limit=5", None),
    ("GET", PATH, None),
    ("GET", "/readyz", None),
]


@pytest.mark.parametrize("state", ["killed", "closed", "damaged checkpoint"])
def test_a_read_only_server_answers_refuses_changes_and_writes_nothing(
    data: Path, state: str
) -> None:
    if state == "closed":
        Store(data, BY_HAND).close()
    if state == "damaged checkpoint":
        (collection_folder(data) / "index" / "manifest.json").write_text("{")
    before = tree(data)
    store = Store(data, READ_ONLY)
    check_whole(store)
    statuses = asyncio.run(asked(store, READ_ONLY, *CHANGES, *QUESTIONS))
    assert statuses == [403] * len(CHANGES) + [200] * len(QUESTIONS)
    assert tree(data) == before


def test_a_read_only_server_works_on_a_disk_that_cannot_be_written(
    killed: Path, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    with disk_of(disk, 16 << 20):
        shutil.copytree(killed, disk / "data")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        server = ServerProcess(disk / "data", tmp_path / "log", "--read-only")
        try:
            assert [server.ask(*question)[0] for question in QUESTIONS] == [200] * len(QUESTIONS)
            assert server.ask("GET", PATH)[1]["items"] == 330
            assert server.ask(*CHANGES[0])[0] == 403
            assert server.stop() == 0
        finally:
            server.kill()


def test_a_log_that_cannot_be_read_without_writing_is_refused_by_name(data: Path) -> None:
    (collection_folder(data) / "record.sqlite-shm").unlink()
    with pytest.raises(OSError, match=r"record.sqlite: its log has changes .* --read-only"):
        Store(data, READ_ONLY)
    Store(data, BY_HAND).close()
    store = Store(data, READ_ONLY)
    check_whole(store)
    store.close()
