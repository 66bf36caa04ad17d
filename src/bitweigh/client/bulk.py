"""Items in bulk: arrays, ids or keys, and payloads as Arrow streams of a few megabytes each."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from bitweigh.typing import Codes, Floats

__all__ = ["ARROW", "Batch", "batches", "item_json", "packed_codes", "payload_json", "vectors_of"]

ARROW = "application/vnd.apache.arrow.stream"
# Below the server's limits of 32 MiB and 100,000 rows a body. Larger batches are no faster, and
# other writers wait for one batch at a time.
_BATCH_BYTES = 8 << 20
_BATCH_ROWS = 20_000


class Batch(NamedTuple):
    """Some rows as the body of a request."""

    rows: int
    body: bytes


def vectors_of(given: ArrayLike, name: str) -> Floats:
    """Float vectors, float32, of one or two dimensions; raises for what no server takes."""
    array = np.asarray(given)
    if array.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be numbers, got {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (dim,) or (n, dim), got {array.shape}")
    with np.errstate(over="ignore"):
        floats = np.ascontiguousarray(array, np.float32)
    if not np.isfinite(floats).all():
        raise ValueError(f"{name} must be finite and fit in float32")
    return floats


def packed_codes(given: ArrayLike, name: str) -> Codes:
    """Packed codes, uint8, of one or two dimensions."""
    array = np.asarray(given)
    if array.dtype != np.uint8:
        raise TypeError(f"{name} must have dtype uint8 (packed bits), got {array.dtype}")
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (n_bytes,) or (n, n_bytes), got {array.shape}")
    return np.ascontiguousarray(array)


def payload_json(payload: Mapping[str, Any] | None) -> str | None:
    """A payload as JSON."""
    if payload is None:
        return None
    return json.dumps(payload, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


def batches(
    values: ArrayLike,
    ids: ArrayLike | None,
    keys: Sequence[str] | None,
    payloads: Sequence[Mapping[str, Any] | None] | None,
) -> Iterator[Batch]:
    """Rows as bodies of requests. Arguments are checked before the first."""
    array = np.asarray(values)
    is_code = array.dtype == np.uint8
    rows = packed_codes(array, "values") if is_code else vectors_of(array, "values")
    if rows.ndim != 2:
        raise ValueError(f"values must have shape (n, dim) or (n, n_bytes), got {rows.shape}")
    if (ids is None) == (keys is None):
        raise ValueError("give either ids or keys")
    n = len(rows)
    names: dict[str, NDArray[np.int64] | Sequence[str]] = {}
    if ids is not None:
        numbers = np.asarray(ids)
        if numbers.dtype.kind not in "iu" and numbers.size:
            raise TypeError(f"ids must be integers, got {numbers.dtype}")
        names["id"] = numbers.astype(np.int64)
    elif keys is not None:
        names["key"] = keys
    texts = None if payloads is None else [payload_json(payload) for payload in payloads]
    for name, given in (*names.items(), ("payload", texts)):
        if given is not None and len(given) != n:
            raise ValueError(f"there must be as many {name}s as values, {n}, got {len(given)}")
    return _bodies(rows, names, texts)


def _bodies(
    rows: NDArray[Any],
    names: Mapping[str, NDArray[np.int64] | Sequence[str]],
    texts: list[str | None] | None,
) -> Iterator[Batch]:
    width = rows.shape[1]
    for first, last in _parts(len(rows), rows.nbytes // max(1, len(rows)), texts):
        part = slice(first, last)
        flat = pa.array(rows[part].ravel())
        if rows.dtype == np.uint8:
            kind, name = pa.binary(width), "code"
            values = pa.Array.from_buffers(kind, last - first, [None, flat.buffers()[1]])
        else:
            name, values = "vector", pa.FixedSizeListArray.from_arrays(flat, width)
        columns = {key: pa.array(given[part]) for key, given in names.items()}
        columns[name] = values
        if texts is not None:
            columns["payload"] = pa.array(texts[part], pa.string())
        batch = pa.RecordBatch.from_pydict(columns)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        yield Batch(last - first, sink.getvalue().to_pybytes())


def _parts(n: int, row_bytes: int, texts: list[str | None] | None) -> Iterator[tuple[int, int]]:
    """Where batches begin and end."""
    first, size = 0, 0
    for row in range(n):
        # A character takes up to four bytes; 64 are for an id or key and what Arrow adds.
        text = texts[row] if texts is not None else None
        more = row_bytes + 64 + (0 if text is None else 4 * len(text))
        if row > first and (size + more > _BATCH_BYTES or row - first == _BATCH_ROWS):
            yield first, row
            first, size = row, 0
        size += more
    if n > first:
        yield first, n


def item_json(given: Mapping[str, Any]) -> dict[str, Any]:
    """An item with arrays as one with JSON values."""
    unknown = set(given) - {"id", "key", "vector", "code", "payload"}
    if unknown:
        raise ValueError(
            f"items have id or key, vector or code, and payload, got {sorted(unknown)}"
        )
    item = {name: value for name, value in given.items() if value is not None}
    if "id" in item:
        item["id"] = int(item["id"])
    if "vector" in item:
        item["vector"] = vectors_of(item["vector"], "vector").tolist()
    if "code" in item:
        code = item["code"]
        raw = code if isinstance(code, bytes) else packed_codes(code, "code").tobytes()
        item["code"] = base64.b64encode(raw).decode()
    return item
