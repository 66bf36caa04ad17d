"""How large an Arrow stream is once it is decompressed, found without decompressing it.

A compressed buffer begins with its true length, which Arrow believes and allocates. A few bytes may
so ask for terabytes. pyarrow shows the metadata of a message only as a flatbuffer, of which this
reads the few fields it needs: https://arrow.apache.org/docs/format/Columnar.html.
"""

from __future__ import annotations

import struct

import pyarrow as pa

__all__ = ["decompressed_bytes"]

# Places of fields in Arrow's Message.fbs.
_HEADER, _DATA, _BUFFERS, _COMPRESSION = 2, 1, 2, 3
_BUFFER_BYTES = 16


def decompressed_bytes(body: bytes | bytearray) -> int:
    """Bytes of all buffers of a stream; raises pa.ArrowException or struct.error if it is none."""
    return sum(
        _message_bytes(message)
        for message in pa.ipc.MessageReader.open_stream(body)
        if message.type in ("record batch", "dictionary")
    )


def _message_bytes(message: pa.ipc.Message) -> int:
    metadata = memoryview(message.metadata)
    batch = _table(metadata, _root(metadata), _HEADER)
    if message.type == "dictionary":
        batch = _table(metadata, batch, _DATA)
    size = len(message.body)
    if batch is None or _field(metadata, batch, _COMPRESSION) is None:
        return size
    buffers = _table(metadata, batch, _BUFFERS)
    if buffers is None:
        return size
    content = memoryview(message.body)
    (count,) = struct.unpack_from("<I", metadata, buffers)
    for number in range(count):
        place = buffers + 4 + _BUFFER_BYTES * number
        offset, length = struct.unpack_from("<qq", metadata, place)
        if length >= 8:
            # -1 for a buffer that is not compressed.
            size += max(0, *struct.unpack_from("<q", content, offset))
    return size


def _root(metadata: memoryview) -> int:
    return int(struct.unpack_from("<I", metadata, 0)[0])


def _field(metadata: memoryview, table: int, field: int) -> int | None:
    """Where the field of a table is; None if it is not there."""
    (back,) = struct.unpack_from("<i", metadata, table)
    directory = table - back
    (size,) = struct.unpack_from("<H", metadata, directory)
    if 4 + 2 * field >= size:
        return None
    (offset,) = struct.unpack_from("<H", metadata, directory + 4 + 2 * field)
    return table + offset if offset else None


def _table(metadata: memoryview, table: int | None, field: int) -> int | None:
    """Where the table or vector that a field refers to is."""
    place = None if table is None else _field(metadata, table, field)
    return None if place is None else place + int(struct.unpack_from("<I", metadata, place)[0])
