"""A process that saves the same index repeatedly, each time in a new child process.

For test_save_faults.py. It reads folders from standard input, one per line. For each it forks a
child that stops itself and saves once it is continued; it prints the child's process id and how it
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

# Two system calls that a save never makes: they mark its begin and end in a trace.
BEGIN, END = "/save-begins", "/save-ends"
# The notes saved with the old index and with the new one.
OLD_NOTE, NEW_NOTE = {"state": "old"}, {"state": "new", "more": list(range(50))}
VERSION_1 = Path(__file__).parent / "golden" / "answers-1" / "vectors-rerank" / "index"


def old_index() -> bitweigh.Index:
    """Return the index in the folder before the save."""
    rng = np.random.default_rng(0)
    index = bitweigh.Index(24, bands=2, band_bits=3)
    index._policy.tail_rows = 50
    index.add(rng.integers(0, 256, (90, 3), dtype=np.uint8), rng.permutation(90))
    index.build()
    index.add(rng.integers(0, 256, (5, 3), dtype=np.uint8))
    return index


def new_index(old: bitweigh.Index) -> bitweigh.Index:
    """Return the index to save: some files stay, some are removed, some are new."""
    rng = np.random.default_rng(1)
    index = old.copy()
    index.remove([3, 4, 5])
    index.add(rng.integers(0, 256, (7, 3), dtype=np.uint8), rng.permutation(7) + 1000)
    return index


def old_vectors() -> bitweigh.VectorIndex:
    """Return the vector index in a folder of version 1."""
    return bitweigh.VectorIndex.load(VERSION_1)


def new_vectors() -> bitweigh.VectorIndex:
    """Return the vector index to save."""
    index = old_vectors()
    index.remove([10, 11])
    index.add(np.ones((3, index.n_features)), ids=[0, 500, 501], on_duplicate="replace")
    return index


def child(index: bitweigh.Index | bitweigh.VectorIndex, folder: str, most_bytes: int) -> int:
    """Save when continued; return 0 on success, 3 after OSError or MemoryError."""
    os.kill(os.getpid(), signal.SIGSTOP)
    if most_bytes:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    Path(BEGIN).exists()
    try:
        index.save(folder, note=NEW_NOTE)
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
    index: bitweigh.Index | bitweigh.VectorIndex = new_index(old_index())
    if sys.argv[2] == "vectors":
        index = new_vectors()
    # Imports and set-up of a first save must not be counted.
    index.save(sys.argv[1], note=NEW_NOTE)
    for line in sys.stdin:
        folder, most_bytes = line.split()
        number = os.fork()
        if number == 0:
            os._exit(child(index, folder, int(most_bytes)))
        print(number, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
