"""Routes that read and write items: upsert, remove, get, page through, import."""

from __future__ import annotations

import base64
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bitweigh.server.asking import as_id
from bitweigh.server.bulk import Columns, arrow_items
from bitweigh.server.calls import ARROW, Call, Reply, json_reply
from bitweigh.server.changes import Item, Remove, RemoveMatching, Upsert
from bitweigh.server.collection import Collection
from bitweigh.server.contents import Contents
from bitweigh.server.payload_filters import Condition, condition_of, has_nul
from bitweigh.server.problems import Problem
from bitweigh.server.record import Stored
from bitweigh.server.schemas import GetRequest, ItemIn, RemoveRequest, UpsertRequest
from bitweigh.server.service import Service
from bitweigh.server.settings import Limits

__all__ = ["get_items", "get_one", "import_items", "page", "remove", "upsert"]

# Values of a request up to which they are checked on the event loop.
_FEW = 16
PARQUET = b"application/vnd.apache.parquet"


async def upsert(service: Service, call: Call, collection: Collection) -> Reply:
    """``PUT /v1/collections/{c}/items``."""
    limits = service.limits
    if call.content_type == ARROW:
        body = await call.body(limits.body_bytes, limits.slow_seconds)
        items = await service.in_thread(arrow_items, body, collection.contents, limits)
    else:
        request = await call.json(UpsertRequest, limits.body_bytes, limits.slow_seconds)
        if len(request.items) <= _FEW:
            items = checked_items(request.items, collection.contents, limits)
        else:
            items = await service.in_thread(
                checked_items, request.items, collection.contents, limits
            )
    if not items:
        return json_reply({"seq": collection.seq, "count": 0})
    if not collection.has_keys and any(item.key is not None for item in items):
        await service.in_thread(collection.note_keys)
    written = await service.write(collection, Upsert(items))
    call.log = {"items": len(items)}
    answer: dict[str, Any] = {"seq": written.seq, "count": written.n_items}
    if any(item.key is not None for item in items):
        as_text = call.ids_as_strings
        answer["ids"] = [str(id_) if as_text else id_ for id_ in written.ids]
    return json_reply(answer)


def checked_items(given: list[ItemIn], contents: Contents, limits: Limits) -> list[Item]:
    """Items as the record takes them; Problem 422 names the first that is wrong."""
    items = []
    seen: set[object] = set()
    for place, item in enumerate(given):
        where = f"items[{place}]"
        if (item.id is None) == (item.key is None):
            raise _wrong(f"{where} must have either an id or a key")
        id_ = None if item.id is None else as_id(item.id, f"{where}.id")
        if item.key is not None and not 0 < len(item.key) <= limits.key_length:
            raise _wrong(f"{where}.key must have 1 to {limits.key_length} characters")
        name = id_ if item.key is None else item.key
        if name in seen:
            raise _wrong(f"{where}: {name!r:.60} is there twice")
        seen.add(name)
        value = contents.value_of(item.vector, item.code, where)
        items.append(Item(id_, item.key, value, payload_text(item.payload, limits, where)))
    return items


def payload_text(payload: dict[str, Any] | None, limits: Limits, where: str) -> str | None:
    """A payload as the record keeps it."""
    if payload is None:
        return None
    try:
        text = orjson.dumps(payload)
    except (orjson.JSONEncodeError, TypeError, RecursionError) as error:
        raise _wrong(f"{where}.payload: {error}") from None
    if len(text) > limits.payload_bytes:
        raise _wrong(
            f"{where}.payload must have at most {limits.payload_bytes} bytes, has {len(text)}"
        )
    found = text.decode()
    if has_nul(found):
        raise _wrong(f"{where}.payload must not have the character U+0000")
    return found


async def remove(service: Service, call: Call, collection: Collection) -> Reply:
    """``POST /v1/collections/{c}/items/remove``."""
    limits = service.limits
    request = await call.json(RemoveRequest, limits.body_bytes, limits.slow_seconds)
    by_name = request.ids is not None or request.keys is not None
    if by_name == (request.filter is not None):
        raise _wrong("a removal must have ids and keys, or a filter")
    if request.filter is not None:
        if not request.filter:
            raise _wrong("filter must have a condition: an empty one would remove everything")
        written = await service.write(
            collection, RemoveMatching(condition_of(request.filter, limits))
        )
    else:
        given = request.ids or []
        if len(given) <= _FEW:
            ids = _checked_ids(given)
        else:
            ids = await service.in_thread(_checked_ids, given)
        written = await service.write(collection, Remove(ids, request.keys or []))
    return json_reply({"seq": written.seq, "count": written.n_items})


def _checked_ids(given: list[int | str]) -> list[int]:
    return [as_id(id_, "ids") for id_ in given]


async def get_items(service: Service, call: Call, collection: Collection) -> Reply:
    """``POST /v1/collections/{c}/items/get``."""
    limits = service.limits
    request = await call.json(GetRequest, limits.body_bytes, limits.slow_seconds)
    keys = request.keys or []
    if len(request.ids or ()) + len(keys) > limits.page:
        raise _wrong(f"at most {limits.page} items can be asked for at once", "limit")
    ids = [as_id(id_, "ids") for id_ in request.ids or []]

    def run() -> tuple[list[dict[str, Any]], list[Any]]:
        with collection.reading() as reader:
            reader.pin()
            known = reader.ids_of(keys)
            wanted = [*ids, *(known[key] for key in keys if key in known)]
            rows = reader.items(wanted)
        there = [id_ for id_ in wanted if id_ in rows and rows[id_].value is not None]
        as_text = call.ids_as_strings
        missing: list[Any] = [str(id_) if as_text else id_ for id_ in ids if id_ not in there]
        missing += [key for key in keys if known.get(key) not in there]
        return [
            shown(rows[id_], collection.contents, request.values, as_text) for id_ in there
        ], missing

    items, missing = await service.in_thread(run)
    return json_reply({"items": items, "missing": missing})


async def get_one(service: Service, call: Call, collection: Collection) -> Reply:
    """``GET /v1/collections/{c}/items/{id}``."""
    id_ = as_id(call.path_params["id"], "id")

    def run() -> Stored | None:
        with collection.reading() as reader:
            return reader.items([id_]).get(id_)

    row = await service.in_thread(run)
    if row is None or row.value is None:
        raise Problem(404, "no-such-item", f"there is no item {id_}")
    return json_reply(shown(row, collection.contents, True, call.ids_as_strings))


async def page(service: Service, call: Call, collection: Collection) -> Reply:
    """``GET /v1/collections/{c}/items?after=17&limit=100&filter=``."""
    limits = service.limits
    query = call.query("after", "limit", "filter", "values")
    after = -1 if "after" not in query else as_id(query["after"], "after")
    wanted = query.get("limit", "100")
    is_number = wanted.isascii() and wanted.isdigit() and len(wanted) < 10
    if not is_number or not 1 <= int(wanted) <= limits.page:
        raise _wrong(f"limit must be from 1 to {limits.page}, got {wanted!r:.60}", "limit")
    limit = int(wanted)
    condition = Condition("1", ())
    if "filter" in query:
        try:
            given = orjson.loads(query["filter"])
        except orjson.JSONDecodeError as error:
            raise Problem(400, "invalid-json", f"filter: {error}") from None
        condition = condition_of(given, limits)
    values = query.get("values", "false")
    if values not in ("true", "false"):
        raise _wrong(f"values must be true or false, got {values!r:.60}")
    deadline = time.monotonic() + limits.max_timeout_ms / 1000

    def run() -> tuple[list[Stored], int]:
        with collection.reading() as reader:
            seq = reader.pin()
            with reader.until(deadline):
                return reader.page(after, limit, *condition), seq

    rows, seq = await service.in_thread(run)
    as_text = call.ids_as_strings
    items = [shown(row, collection.contents, values == "true", as_text) for row in rows]
    following = items[-1]["id"] if len(items) == limit else None
    return json_reply({"items": items, "next": following, "seq": seq})


def shown(row: Stored, contents: Contents, values: bool, as_text: bool) -> dict[str, Any]:
    """An item as answers show it."""
    item: dict[str, Any] = {"id": str(row.id) if as_text else row.id, "seq": row.seq}
    if row.key is not None:
        item["key"] = row.key
    if row.payload is not None:
        item["payload"] = orjson.Fragment(row.payload)
    if values and row.value is not None:
        array = contents.array_of([row.value])[0]
        if array.dtype == np.uint8:
            item["code"] = base64.b64encode(row.value).decode()
        else:
            item["vector"] = array.tolist()
    return item


async def import_items(service: Service, call: Call, collection: Collection) -> Reply:
    """``POST /v1/collections/{c}/import``: a parquet file as the body."""
    if call.content_type not in (PARQUET, b"application/octet-stream"):
        raise Problem(415, "content-type", f"content-type must be {PARQUET.decode()}")
    query = call.query("id", "key", "value", "payload")
    payload = [name for name in query["payload"].split(",") if name] if "payload" in query else None
    columns = Columns(query.get("id"), query.get("key"), query.get("value"), payload)
    limits = service.limits
    handle, name = tempfile.mkstemp(".parquet", "import-", service.store.folder)
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            async for piece in call.chunks(limits.import_bytes, limits.slow_seconds):
                file.write(piece)
        job = service.jobs.start_import(collection, path, columns)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise Problem(507, "disk-full", f"the file could not be kept: {error.strerror}") from error
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return json_reply(job.as_json(), 202)


def _wrong(detail: str, name: str = "invalid-value") -> Problem:
    return Problem(422, name, detail)
