"""The process that builds: `Index.from_batches`, with a log of the parts that it has worked on.

It is run as a script, so that it can be killed, limited and watched from outside.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

import bitweigh
from bitweigh._streaming import build, plan
from bitweigh._streaming.journal import Journal
from bitweigh._streaming.merge import merge_range
from bitweigh._streaming.pieces import sort_piece

BATCH_ROWS = 1 << 16


def main() -> None:
    """Build an index from the files of a folder; print "ready" when the imports are done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("codes", type=Path)
    parser.add_argument("index", type=Path)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--build-memory", type=int, default=1 << 30)
    parser.add_argument("--rows-at-once", type=int, help="the most rows of a piece")
    parser.add_argument("--log", type=Path, help="gets a line for each part that is begun")
    parser.add_argument("--iterator", action="store_true", help="give batches, not files")
    parser.add_argument("--max-file-bytes", type=int, help="no file may be larger")
    parser.add_argument("--kill-at-step", type=int, help="of publishing")
    parser.add_argument("--end-after", help="end when the journal has this stage or fact")
    arguments = parser.parse_args()
    if arguments.rows_at_once is not None:
        mock.patch.object(plan, "_MAX_ROWS", arguments.rows_at_once).start()
    if arguments.max_file_bytes is not None:
        limits = (arguments.max_file_bytes, resource.RLIM_INFINITY)
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    if arguments.log is not None:
        log_parts(arguments.log)
    if arguments.kill_at_step is not None:
        kill_while_publishing(arguments.index.resolve(), arguments.kill_at_step)
    if arguments.end_after is not None:
        end_after(arguments.end_after)
    source = in_batches(arguments.codes) if arguments.iterator else arguments.codes
    print("ready", flush=True)
    bitweigh.Index.from_batches(
        source,
        arguments.index,
        layout="lean",
        build_memory=arguments.build_memory,
        threads=arguments.threads,
    )


def in_batches(folder: Path) -> Iterator[NDArray[np.uint8]]:
    """Yield the codes of all files in a folder; they stay in the files."""
    for path in sorted(folder.glob("*.npy")):
        codes = np.load(path, mmap_mode="r")
        for first in range(0, len(codes), BATCH_ROWS):
            yield codes[first : first + BATCH_ROWS]


def log_parts(path: Path) -> None:
    """Let the build note each piece and each range when it begins to work on it."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def logged_sort(filling: Any, *others: Any) -> Any:  # noqa: ANN401 whatever the build gives
        os.write(file, f"pieces {filling.number}\n".encode())
        return sort_piece(filling, *others)

    def logged_merge(merging: Any, part: Any, workspace: Any) -> None:  # noqa: ANN401
        os.write(file, f"ranges of band {merging.files.number} {part.number}\n".encode())
        merge_range(merging, part, workspace)

    mock.patch.object(build, "sort_piece", logged_sort).start()
    mock.patch.object(build, "merge_range", logged_merge).start()


def kill_while_publishing(index: Path, steps: int) -> None:
    """Let the process kill itself after it has changed so many names, once the index has a folder.

    Names of files are changed while the index is published and the files of the build are deleted.
    """
    left = steps
    publishing = index.exists()

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left, publishing
        publishing = publishing or (event == "os.mkdir" and Path(arguments[0]) == index)
        if publishing and event in {"os.rename", "os.link", "os.remove", "os.rmdir"}:
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1

    sys.addaudithook(hook)


def end_after(name: str) -> None:
    """Let the process end when its journal has a fact, or a finished part of a stage."""
    write = Journal._write

    def writing(journal: Journal, facts: dict[str, Any]) -> None:
        write(journal, facts)
        if name in facts:
            os._exit(0)

    mock.patch.object(Journal, "_write", writing).start()


if __name__ == "__main__":
    main()
