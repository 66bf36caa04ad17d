"""Ctrl-C in any line of a save leaves no lock, no new folder and no new file."""

from __future__ import annotations

import contextlib
import dis
import fcntl
import gc
import linecache
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from storage_cases import index_of, vectors_of

import bitweigh
from bitweigh._disk import folders
from bitweigh._disk.folders import FolderLock, LockedFolder, locked_folder
from bitweigh.vector_index import VectorIndex

EVERYWHERE = (f"{os.sep}bitweigh{os.sep}", "contextlib.py", "_weakrefset.py")
LOCKS = (str(Path("disk", "folders.py")),)


def leaves_with(frame: FrameType) -> bool:
    """Whether the block of a `with` has ended here, and its `__exit__` comes next.

    Python does not check for signals in between, so no interrupt can happen there.
    """
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
    return line.startswith("with ") and (
        dis.opname[frame.f_code.co_code[frame.f_lasti]] == "LOAD_CONST"
    )


def interrupted(
    call: Callable[[], object], line: int, traced: tuple[str, ...]
) -> tuple[bool, KeyboardInterrupt | None]:
    """Interrupt a call in the n-th executed line of some files.

    Returns whether it got that far, and the error. Python drops an error in a finaliser, so there
    may be none. The garbage collector, which runs finalisers at any moment, is off meanwhile.
    """
    left, error = line, None

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        name = frame.f_code.co_filename
        if not any(one in name for one in traced):
            return None
        if event == "line" and not leaves_with(frame):
            left -= 1
            if left < 0:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    gc.disable()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt as interrupt:
        error = interrupt
    finally:
        sys.settrace(before)
        gc.enable()
    return left < 0, error


def is_locked(folder: Path) -> bool:
    if not folder.exists():
        return False
    directory = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(directory)
    return False


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


# Step between interrupted lines: every line of locking code, and as many others as time allows.
@pytest.mark.parametrize(("traced", "stride"), [(EVERYWHERE, 31), (LOCKS, 1)])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("make", "load"), [(index_of, bitweigh.load), (vectors_of, VectorIndex.load)]
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_in_any_line_leaves_no_lock_and_nothing_half_saved(
    make: Callable[[int], Any],
    load: Callable[[Path], Any],
    is_first: bool,
    traced: tuple[str, ...],
    stride: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # which takes most of the time
    old, new, folder = make(5), make(6), tmp_path / "a" / "b"
    for name, index in (("old", old), ("new", new)):
        index.save(tmp_path / name)
    old_files, new_files = files_in(tmp_path / "old"), files_in(tmp_path / "new")
    line, came, raised = 0, True, 0
    while came:
        shutil.rmtree(tmp_path / "a", ignore_errors=True)
        if not is_first:
            shutil.copytree(tmp_path / "old", folder)
        # The error is kept: locks must be released even while a traceback is alive.
        came, error = interrupted(lambda: new.save(folder), line, traced)
        assert not folders._opening._is_owned()  # type: ignore[attr-defined]
        assert not is_locked(folder)
        assert not is_locked(folder / "index")
        if not (tmp_path / "a").exists():
            assert is_first
        elif len(load(folder)) == 5:
            assert files_in(folder) == old_files
        else:
            assert len(load(folder)) == 6
            assert files_in(folder) <= old_files | new_files
        new.save(folder)
        assert files_in(folder) == new_files
        raised += error is not None
        line += stride
    assert raised > 15
    del error
    gc.collect()  # what is left is finalised here, and not in another test


def test_a_lock_whose_making_was_interrupted_can_be_finalised() -> None:
    FolderLock.__new__(FolderLock).__del__()


@contextlib.contextmanager
def child() -> Iterator[int]:
    """Fork; the child also runs the block, with 0, and exits after it."""
    number = os.fork()
    if number == 0:
        try:
            yield 0
        finally:
            os._exit(0)
    yield number


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_does_not_keep_the_lock_of_a_process_that_was_killed(
    tmp_path: Path,
) -> None:
    began, begins = os.pipe()
    awaited, goes_on = os.pipe()
    # The killed process has a child, forked while it saved.
    with child() as killed:
        if killed == 0:
            lock = FolderLock(tmp_path)
            lock.acquire()
            if os.fork() == 0:
                os.close(goes_on)
                os.write(begins, b".")
                os.read(awaited, 1)
            os._exit(0)
    os.read(began, 1)
    os.waitpid(killed, 0)
    try:
        assert not is_locked(tmp_path)
    finally:
        for end in (began, begins, awaited, goes_on):
            os.close(end)


def test_a_thread_that_holds_a_folder_saves_to_it_and_holds_it_still(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("folder")
    with locked_folder(tmp_path / "folder"):
        for path in ("folder", "link", "folder"):
            index_of(3).save(tmp_path / path)
            assert is_locked(tmp_path / "folder")
        with locked_folder(tmp_path / "folder"):
            index_of(4).save(tmp_path / "folder")
        assert is_locked(tmp_path / "folder")
    assert not is_locked(tmp_path / "folder")
    assert len(bitweigh.load(tmp_path / "link")) == 4


def test_a_folder_that_was_removed_while_its_lock_was_awaited_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flock, removed = fcntl.flock, []

    def remove_first(file: int, how: int) -> None:
        if not removed:
            removed.append(True)
            (tmp_path / "index").rmdir()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    index_of(3).save(tmp_path / "index")
    assert removed
    assert len(bitweigh.load(tmp_path / "index")) == 3


def test_a_folder_that_was_made_is_removed_while_it_is_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = LockedFolder(tmp_path / "a" / "b")
    folder.acquire()
    rmdir, locked = Path.rmdir, []

    def watched_rmdir(path: Path) -> None:
        locked.append(is_locked(tmp_path / "a" / "b"))
        rmdir(path)

    monkeypatch.setattr(Path, "rmdir", watched_rmdir)
    folder.release()
    assert locked[0]
    assert not (tmp_path / "a").exists()
