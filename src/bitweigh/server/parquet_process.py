"""Parquet files, read by a process of their own with bounded memory.

A small parquet file may decode to more than any memory holds, and nothing in it can be believed
before. So a child process decodes it under a limit that the system enforces (on Linux), and hands
batches on as an Arrow stream. What it cannot decode ends the child, and not the server.

The child runs this file as a script, and imports nothing of bitweigh.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["parquet_batches"]

_MEMORY = 1 << 30
_BATCH_BYTES = 64 << 20
_MAX_MESSAGE = 300


@contextmanager
def parquet_batches(path: Path, rows: int) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """The number of rows of a file, and its batches; ValueError if it cannot be read."""
    child = subprocess.Popen(
        [sys.executable, "-P", __file__, str(path), str(rows)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Other allocators reserve memory ahead, which the limit counts.
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    assert child.stdout is not None
    try:
        count = child.stdout.read(8)
        if len(count) < 8:
            raise _failure(child)
        yield int.from_bytes(count, "little"), _batches(child)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
        if child.stderr is not None:
            child.stderr.close()


def _batches(child: subprocess.Popen[bytes]) -> Iterator[pa.RecordBatch]:
    try:
        with pa.ipc.open_stream(child.stdout) as stream:
            yield from stream
    except (pa.ArrowException, OSError) as error:
        raise _failure(child) from error
    if child.wait() != 0:
        raise _failure(child)


def _failure(child: subprocess.Popen[bytes]) -> ValueError:
    """What the child said at its end."""
    assert child.stderr is not None
    said = child.stderr.read().decode(errors="replace").strip().splitlines()
    detail = said[-1][:_MAX_MESSAGE] if said else "the process that reads it was ended"
    return ValueError(f"not a parquet file that can be read: {detail}")


def _read(path: str, rows: int, out: Any) -> None:  # noqa: ANN401
    """Write the number of rows, then all of them as an Arrow stream."""
    import pyarrow.parquet as pq

    _limit_memory()
    file = pq.ParquetFile(path, buffer_size=1 << 20)
    out.write(file.metadata.num_rows.to_bytes(8, "little"))
    with pa.ipc.new_stream(out, file.schema_arrow) as stream:
        for batch in file.iter_batches(rows, use_threads=False):
            for piece in _pieces(batch):
                stream.write_batch(piece)


def _pieces(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    if batch.nbytes <= _BATCH_BYTES:
        yield batch
    elif batch.num_rows == 1:
        raise ValueError(f"a row has {batch.nbytes} bytes, {_BATCH_BYTES} are allowed")
    else:
        half = batch.num_rows // 2
        yield from _pieces(batch.slice(0, half))
        yield from _pieces(batch.slice(half))


def _limit_memory() -> None:
    """Allow so much beyond what the process has mapped already."""
    import resource

    try:
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (mapped + _MEMORY, mapped + _MEMORY))
    except (OSError, ValueError):
        return  # systems that do not enforce such a limit


def _main() -> None:
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    try:
        _read(sys.argv[1], int(sys.argv[2]), sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except MemoryError as error:
        sys.exit(f"decoding needs more than {_MEMORY >> 20} MiB: {error}")
    except Exception as error:
        sys.exit(" ".join(str(error).split()) or type(error).__name__)


if __name__ == "__main__":
    _main()
