"""A process that saves the same index again and again, each time in a child of its own.

For test_save_faults.py. It reads folders from standard input, one to a line. For each it forks a
child that stops itself, and saves when it is continued; and it tells the child's number, and how it
ended.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
from pathlib import Path

import numpy as np

import bitweigh

# Two calls that save itself never makes: what lies between them is the save.
BEGIN, END = "/save-begins", "/save-ends"


def old_index() -> bitweigh.Index:
    """What the folder holds before."""
    rng = np.random.default_rng(0)
    index = bitweigh.Index(24, bands=2, band_bits=3)
    index._policy.tail_rows = 50
    index.add(rng.integers(0, 256, (90, 3), dtype=np.uint8), rng.permutation(90))
    index.build()
    index.add(rng.integers(0, 256, (5, 3), dtype=np.uint8))
    return index


def new_index(old: bitweigh.Index) -> bitweigh.Index:
    """What it holds afterwards: some files stay, some go, some come."""
    rng = np.random.default_rng(1)
    index = old.copy()
    index.remove([3, 4, 5])
    index.add(rng.integers(0, 256, (7, 3), dtype=np.uint8), rng.permutation(7) + 1000)
    return index


def child(index: bitweigh.Index, folder: str, most_bytes: int) -> int:
    """Save when continued; 0 if that went well, 3 if it raised OSError or MemoryError."""
    os.kill(os.getpid(), signal.SIGSTOP)
    if most_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    Path(BEGIN).exists()
    try:
        index.save(folder)
    except (OSError, MemoryError):
        return 3
    except BaseException:
        traceback.print_exc()
        return 4
    finally:
        Path(END).exists()
    return 0


def main() -> None:
    """Serve until the input ends."""
    index = new_index(old_index())
    # What is imported or made at a first save must not be counted.
    index.save(sys.argv[1])
    for line in sys.stdin:
        folder, most_bytes = line.split()
        number = os.fork()
        if number == 0:
            os._exit(child(index, folder, int(most_bytes)))
        print(number, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
