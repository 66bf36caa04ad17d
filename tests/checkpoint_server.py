"""A process that makes the same checkpoint of a server repeatedly, each time in a new child.

For test_server_faults.py. It reads folders from standard input, one per line. For each it forks a
child that opens the folder, stops itself, and makes the checkpoint once it is continued; it prints
the child's process id and how it ended.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.server.writing import COLLECTION
from save_server import BEGIN, END
from server_folders import BY_HAND

from bitweigh.server.store import Store


def child(folder: str) -> int:
    """Make a checkpoint when continued; return 0 on success, 3 after an error of the disk."""
    collection = Store(Path(folder), BY_HAND)[COLLECTION]

    def here(run: Callable[[], Any]) -> Any:
        return run()

    # In this thread, the one that is traced; the writer's has nothing to do.
    collection.writer.do = here  # type: ignore[method-assign]
    os.kill(os.getpid(), signal.SIGSTOP)
    Path(BEGIN).exists()
    try:
        collection.checkpoint()
    except (OSError, MemoryError, sqlite3.Error):
        return 3
    except BaseException:
        traceback.print_exc()
        return 4
    finally:
        Path(END).exists()
    return 0


def main() -> None:
    """Serve until the input ends."""
    for line in sys.stdin:
        folder = line.split()[0]
        number = os.fork()
        if number == 0:
            os._exit(child(folder))
        print(number, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
