"""Links, pipes and devices: refused inside index folders; links in a caller's path are followed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from storage_cases import index_of, vectors_of

import bitweigh
from bitweigh import hashers, weighers
from bitweigh._disk import reading
from bitweigh.vector_index import VectorIndex


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def folder(path: Path) -> None:
    path.mkdir()


STRANGE = [pipe, link_to_device, link_to_itself, folder]
INDEX_FILES = ["manifest.json", "codes-*", "ids-*", "by_id-*"]
VECTOR_FILES = ["manifest.json", "hasher-*", "weigher-*", "vectors-*", "vector_ids-*", "codes-*"]


@pytest.mark.parametrize("put", STRANGE)
@pytest.mark.parametrize("name", INDEX_FILES)
def test_an_index_whose_file_is_something_else_is_neither_read_nor_replaced(
    name: str, put: Callable[[Path], None], tmp_path: Path
) -> None:
    index_of(3).save(tmp_path)
    (path,) = tmp_path.glob(name)
    path.unlink()
    put(path)
    for mmap in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match="must be a plain file, is") as caught:
            bitweigh.load(tmp_path, mmap=mmap)
        assert caught.value.path == path
    with pytest.raises(FileExistsError, match="must be a plain file to be replaced, is a"):
        index_of(4).save(tmp_path)


@pytest.mark.parametrize("put", STRANGE)
@pytest.mark.parametrize("name", VECTOR_FILES)
def test_a_vector_index_whose_file_is_something_else_is_neither_read_nor_replaced(
    name: str, put: Callable[[Path], None], tmp_path: Path
) -> None:
    vectors_of(3).save(tmp_path)
    (path,) = tmp_path.glob(name)
    path.unlink()
    put(path)
    before = sorted(tmp_path.rglob("*"))
    for mmap in (False, True):
        with pytest.raises(bitweigh.CorruptFileError, match="must be a plain file, is") as caught:
            VectorIndex.load(tmp_path, mmap=mmap)
        assert caught.value.path == path
    with pytest.raises(FileExistsError, match="must be a plain file to be replaced, is a"):
        vectors_of(4).save(tmp_path)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", ["manifest.json.tmp", "array"])
def test_a_save_writes_through_no_link(name: str, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    index_of(4).save(tmp_path / "probe")
    if name == "array":
        name = next((tmp_path / "probe").glob("codes-*")).name + ".tmp"
    index_of(3).save(tmp_path / "index")
    (tmp_path / "index" / name).symlink_to(victim)
    with pytest.raises(FileExistsError, match="is a link: remove it first"):
        index_of(4).save(tmp_path / "index")
    assert victim.read_text() == "precious"
    assert len(bitweigh.load(tmp_path / "index")) == 3


def test_a_save_writes_to_no_file_that_has_another_name_too(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"")
    index_of(3).save(tmp_path / "index")
    os.link(victim, tmp_path / "index" / "manifest.json.tmp")
    index_of(4).save(tmp_path / "index")
    assert victim.read_bytes() == b""
    assert len(bitweigh.load(tmp_path / "index")) == 4


def test_a_vector_index_writes_through_no_link_to_a_manifest(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    vectors_of(3).save(tmp_path / "vectors")
    (tmp_path / "vectors" / "manifest.json.tmp").symlink_to(victim)
    with pytest.raises(FileExistsError, match="is a link: remove it first"):
        vectors_of(4).save(tmp_path / "vectors")
    assert victim.read_text() == "precious"


def test_the_path_of_a_folder_may_lead_through_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "to-be-made").symlink_to("real/made")
    index_of(3).save(tmp_path / "link" / "codes")
    assert len(bitweigh.load(tmp_path / "link" / "codes")) == 3
    vectors_of(3).save(tmp_path / "to-be-made")
    vectors_of(4).save(tmp_path / "to-be-made")
    assert len(VectorIndex.load(tmp_path / "to-be-made", mmap=True)) == 4
    assert (tmp_path / "to-be-made").is_symlink()
    assert (tmp_path / "real" / "made" / "manifest.json").is_file()


def test_a_path_is_kept_as_it_was_given_unless_a_link_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("real")
    assert reading.resolved("some/index") == Path("some/index")
    assert reading.resolved("link/index") == tmp_path / "real" / "index"


@pytest.mark.parametrize("put", STRANGE)
@pytest.mark.parametrize("load", [hashers.load, weighers.load])
def test_a_hasher_or_weigher_is_read_from_a_plain_file_only(
    load: Callable[[Path], object], put: Callable[[Path], None], tmp_path: Path
) -> None:
    put(tmp_path / "file.npz")
    with pytest.raises(bitweigh.CorruptFileError, match="must be a plain file, is"):
        load(tmp_path / "file.npz")


@pytest.mark.parametrize("put", [pipe, link_to_device])
def test_a_hasher_replaces_nothing_but_a_plain_file(
    put: Callable[[Path], None], tmp_path: Path
) -> None:
    put(tmp_path / "file.npz")
    with pytest.raises(FileExistsError, match="must be a plain file to be replaced"):
        vectors_of(3).hasher.save(tmp_path / "file.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["file.npz"]


def test_a_hasher_is_saved_where_a_link_leads(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link.npz").symlink_to("real/file.npz")
    for _ in range(2):
        vectors_of(3).hasher.save(tmp_path / "link.npz")
        assert hashers.load(tmp_path / "link.npz").n_bits_ == 7
    assert (tmp_path / "link.npz").is_symlink()
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["file.npz"]


def replace_when_opened(
    monkeypatch: pytest.MonkeyPatch, path: Path, replace: Callable[[], object]
) -> None:
    """Write a plain file that is replaced between the first look at it and its opening."""
    path.write_bytes(b"plain")
    os_open = os.open

    def open_replaced(opened: Path, flags: int) -> int:
        path.unlink()
        replace()
        return os_open(opened, flags)

    monkeypatch.setattr(os, "open", open_replaced)


def test_a_file_that_becomes_a_link_while_it_is_opened_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    replace_when_opened(monkeypatch, path, lambda: path.symlink_to("/dev/zero"))
    with pytest.raises(bitweigh.CorruptFileError, match="is a link"):
        reading.open_plain(path)


def test_a_file_that_becomes_a_pipe_while_it_is_opened_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    replace_when_opened(monkeypatch, path, lambda: os.mkfifo(path))
    with pytest.raises(bitweigh.CorruptFileError, match="is a pipe"):
        reading.open_plain(path)
