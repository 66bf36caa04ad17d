"""Items in bulk: rows of Arrow streams and parquet files, a batch at a time.

Columns: `id` (integers) or `key` (strings); `vector` (lists of numbers) or `code` (binary, or lists
of uint8); `payload`, if it has strings, JSON objects; all others are fields of the payload.

Columns without nulls, of fixed-size lists or binary, are checked and converted whole.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bitweigh.server.arrow_sizes import decompressed_bytes
from bitweigh.server.changes import Item
from bitweigh.server.contents import Contents
from bitweigh.server.payload_filters import has_nul
from bitweigh.server.problems import Problem
from bitweigh.server.settings import Limits

__all__ = ["Columns", "RowError", "arrow_items", "items_of_batch"]

_MAX_ARROW_ROWS = 100_000
# Values of a batch that become Python objects, which are up to 64 times as large as in Arrow.
_MAX_VALUES = 4_000_000


class Columns(NamedTuple):
    """Which column is what; None for the usual names."""

    id: str | None = None
    key: str | None = None
    value: str | None = None
    payload: Sequence[str] | None = None


class RowError(NamedTuple):
    """A row that cannot become an item."""

    row: int
    detail: str


class Batch(NamedTuple):
    """The items of some rows, and the rows that are none."""

    items: list[Item]
    errors: list[RowError]


def arrow_items(body: bytes | bytearray, contents: Contents, limits: Limits) -> list[Item]:
    """The items of an Arrow stream; Problem 400 or 422 if it is none."""
    items: list[Item] = []
    try:
        if decompressed_bytes(body) > limits.body_bytes:
            raise Problem(
                413,
                "body-too-large",
                f"an Arrow stream must have at most {limits.body_bytes} bytes without compression",
            )
        with pa.ipc.open_stream(body) as stream:
            for batch in stream:
                if len(items) + batch.num_rows > _MAX_ARROW_ROWS:
                    raise Problem(
                        413, "too-many-items", f"a body must have at most {_MAX_ARROW_ROWS} items"
                    )
                batch.validate(full=True)
                found = items_of_batch(batch, Columns(), contents, limits, len(items))
                if found.errors:
                    row, detail = found.errors[0]
                    raise Problem(422, "invalid-value", f"row {row}: {detail}")
                items.extend(found.items)
    except (pa.ArrowException, OSError, ValueError, TypeError, struct.error) as error:
        raise Problem(400, "invalid-arrow", f"not an Arrow stream: {error}") from error
    seen: set[object] = set()
    for row, item in enumerate(items):
        name = item.id if item.key is None else item.key
        if name in seen:
            raise Problem(422, "invalid-value", f"row {row}: {name!r:.60} is there twice")
        seen.add(name)
    return items


def items_of_batch(
    batch: pa.RecordBatch, columns: Columns, contents: Contents, limits: Limits, first: int
) -> Batch:
    """Items of the rows of a batch; `first` is the number of its first row."""
    names = batch.schema.names
    if len(set(names)) < len(names):
        raise Problem(422, "invalid-column", "two columns have the same name")
    id_name = columns.id or ("id" if "id" in names and columns.key is None else None)
    key_name = columns.key or ("key" if id_name is None and "key" in names else None)
    value_name = columns.value or next((name for name in ("vector", "code") if name in names), None)
    for name in (id_name, key_name, value_name, *(columns.payload or ())):
        if name is not None and name not in names:
            raise Problem(422, "no-such-column", f"there is no column {name!r}")
    if id_name is None and key_name is None:
        raise Problem(422, "no-such-column", "there must be a column 'id' or 'key'")
    if value_name is None:
        raise Problem(422, "no-such-column", "there must be a column 'vector' or 'code'")
    others = [name for name in names if name not in (id_name, key_name, value_name)]
    payload_names = others if columns.payload is None else list(columns.payload)
    _check_columns(batch, id_name, key_name, payload_names, limits)
    values, problems = _values(batch.column(value_name), contents)
    payloads = _payloads(batch, payload_names, problems)
    ids: Sequence[Any] = _listed(batch, id_name)
    keys: Sequence[Any] = _listed(batch, key_name)
    _check_names(batch, id_name, key_name, ids, keys, limits, problems)
    _check_payloads(payloads, limits, problems)
    rows = zip(ids, keys, values, payloads, strict=True)
    if not problems:
        return Batch([Item._make(row) for row in rows], [])
    items = [Item._make(row) for place, row in enumerate(rows) if place not in problems]
    return Batch(items, [RowError(first + row, problems[row]) for row in sorted(problems)])


def _check_columns(
    batch: pa.RecordBatch,
    id_name: str | None,
    key_name: str | None,
    payload_names: Sequence[str],
    limits: Limits,
) -> None:
    """Raise a Problem for columns that cannot be listed, or would be too large as objects."""
    if id_name is not None and not pa.types.is_integer(batch.column(id_name).type):
        raise _wrong_column(id_name, batch.column(id_name).type, "ids must be integers")
    size = _Size(limits)
    if key_name is not None:
        kind = batch.column(key_name).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        if not _is_text(plain):
            raise _wrong_column(key_name, kind, "keys must be strings")
        size.add(key_name, batch.column(key_name))
    for name in payload_names:
        size.add(name, batch.column(name))


class _Size:
    """How many objects, and bytes of repeated texts, columns are once they are listed."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._values = 0
        self._text_bytes = 0

    def add(self, name: str, column: Any) -> None:  # noqa: ANN401
        kind = column.type
        self._values += len(column)
        if self._values > _MAX_VALUES:
            raise Problem(
                413, "too-many-values", f"rows must have fewer values together: column {name!r}"
            )
        if pa.types.is_dictionary(kind):
            self._add_dictionary(name, column)
        elif pa.types.is_struct(kind):
            for part in column.flatten():
                self.add(name, part)
        elif (
            pa.types.is_list(kind)
            or pa.types.is_large_list(kind)
            or pa.types.is_fixed_size_list(kind)
        ):
            self.add(name, column.flatten())
        elif not (
            _is_text(kind)
            or pa.types.is_null(kind)
            or pa.types.is_boolean(kind)
            or pa.types.is_integer(kind)
            or pa.types.is_floating(kind)
            or pa.types.is_decimal(kind)
            or pa.types.is_temporal(kind)
        ):
            raise _wrong_column(name, kind, "payloads are JSON")

    def _add_dictionary(self, name: str, column: Any) -> None:  # noqa: ANN401
        if _is_text(column.type.value_type):
            lengths = pc.binary_length(column.dictionary).take(column.indices)
            self._text_bytes += pc.sum(lengths).as_py() or 0
            if self._text_bytes > self._limits.body_bytes:
                raise Problem(413, "too-large", f"column {name!r} is too large once decoded")
        elif pa.types.is_nested(column.type.value_type):
            raise _wrong_column(name, column.type, "dictionaries must be of plain values")
        else:
            self.add(name, column.dictionary)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _wrong_column(name: str, kind: pa.DataType, why: str) -> Problem:
    return Problem(422, "invalid-column", f"column {name!r:.100} is {kind!s:.100}: {why}")


def _listed(batch: pa.RecordBatch, name: str | None) -> Sequence[Any]:
    if name is None:
        return [None] * batch.num_rows
    listed: Sequence[Any] = batch.column(name).to_pylist()
    return listed


def _check_names(
    batch: pa.RecordBatch,
    id_name: str | None,
    key_name: str | None,
    ids: Sequence[Any],
    keys: Sequence[Any],
    limits: Limits,
    problems: dict[int, str],
) -> None:
    """Note the rows whose id or key is none."""
    if id_name is not None:
        column = batch.column(id_name)
        if pa.types.is_int64(column.type) and not column.null_count:
            numbers = column.to_numpy()
            if not len(numbers) or numbers.min() >= 0:
                return
        for row, id_ in enumerate(ids):
            if isinstance(id_, bool) or not isinstance(id_, int) or not 0 <= id_ < 2**63:
                problems[row] = f"id must be an integer from 0 to 2^63 - 1, got {id_!r:.60}"
    if key_name is not None and id_name is None:
        most = limits.key_length
        for row, key in enumerate(keys):
            if not isinstance(key, str) or not 0 < len(key) <= most:
                problems[row] = f"key must be a string of 1 to {most} characters, got {key!r:.60}"


def _check_payloads(
    payloads: Sequence[str | None], limits: Limits, problems: dict[int, str]
) -> None:
    """Note the rows whose payload the record cannot keep."""
    for row, payload in enumerate(payloads):
        if payload is None:
            continue
        # A character has at most 4 bytes: most need not be encoded to know.
        if 4 * len(payload) > limits.payload_bytes and len(payload.encode()) > limits.payload_bytes:
            problems[row] = f"payload must have at most {limits.payload_bytes} bytes"
        elif has_nul(payload):
            problems[row] = "payload must not have the character U+0000"


def _values(
    column: Any,  # noqa: ANN401
    contents: Contents,
) -> tuple[Sequence[bytes | None], dict[int, str]]:
    """What the record keeps of each row, and what is wrong with those that have none."""
    whole = _matrix(column)
    if whole is not None:
        packed = contents.values_of_array(whole, is_code=whole.dtype == np.uint8)
        if packed is not None:
            raw, n_bytes = packed.tobytes(), contents.n_bytes
            return [raw[at : at + n_bytes] for at in range(0, len(raw), n_bytes)], {}
    return _values_by_row(column, contents)


def _matrix(column: Any) -> NDArray[Any] | None:  # noqa: ANN401
    """A column as one array (n, width), if all its rows have the same length and no nulls."""
    kind = column.type
    if column.null_count or not len(column):
        return None
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        raw = np.frombuffer(column.buffers()[1] or b"", np.uint8)
        # A buffer may be longer than its rows, and a slice begins later.
        part = raw[column.offset * width : (column.offset + len(column)) * width]
        return part.reshape(len(column), width)
    if not pa.types.is_fixed_size_list(kind):
        return None
    flat = column.flatten()
    if flat.null_count or not (pa.types.is_floating(flat.type) or pa.types.is_integer(flat.type)):
        return None
    whole: NDArray[Any] = flat.to_numpy(zero_copy_only=False).reshape(len(column), kind.list_size)
    return whole


def _values_by_row(
    column: Any,  # noqa: ANN401
    contents: Contents,
) -> tuple[Sequence[bytes | None], dict[int, str]]:
    problems: dict[int, str] = {}
    kind = column.type
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raw = column.to_pylist()
        values = [None if one is None else np.frombuffer(one, np.uint8) for one in raw]
    elif pa.types.is_fixed_size_binary(kind):
        values = [
            None if one is None else np.frombuffer(one, np.uint8) for one in column.to_pylist()
        ]
    elif (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        values = _rows_of(column)
    else:
        raise Problem(422, "invalid-column", f"values must be lists or binary, got {kind}")
    is_code = all(value is None or value.dtype == np.uint8 for value in values)
    found: list[bytes | None] = []
    for row, value in enumerate(values):
        if value is None:
            problems[row] = "there is no vector or code"
            found.append(None)
            continue
        try:
            found.append(contents.value_of_row(value, is_code=is_code))
        except Problem as problem:
            problems[row] = problem.detail
            found.append(None)
    return found, problems


def _rows_of(column: Any) -> list[NDArray[Any] | None]:  # noqa: ANN401
    """Lists as arrays; None for those that are null or have nulls."""
    rows: list[NDArray[Any] | None] = []
    for one in column:
        if not one.is_valid or one.values.null_count:
            rows.append(None)
        else:
            rows.append(one.values.to_numpy(zero_copy_only=False))
    return rows


def _payloads(
    batch: pa.RecordBatch, names: list[str], problems: dict[int, str]
) -> Sequence[str | None]:
    """Payloads as JSON; rows whose column `payload` has something else are noted."""
    whole = "payload" in names and _is_text(batch.column("payload").type)
    fields = [name for name in names if not (whole and name == "payload")]
    texts: Sequence[str | None] = _listed(batch, "payload" if whole else None)
    if whole:
        for row, text in enumerate(texts):
            if text is not None and not _is_object(text):
                problems[row] = f"payload must be a JSON object, got {text!r:.60}"
    if not fields:
        return texts
    rows = batch.select(fields).to_pylist()
    for row, text in zip(rows, texts, strict=True):
        if text is not None and _is_object(text):
            row.update(orjson.loads(text))
    return [orjson.dumps(row, default=str).decode() for row in rows]


def _is_object(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False
