"""The OpenAPI 3.1 document, made from the routes and the schemas."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

import bitweigh
from bitweigh.server import schemas
from bitweigh.server.definition import Definition

if TYPE_CHECKING:
    from bitweigh.server.app import RouteOf

__all__ = ["document"]

_JSON = "application/json"
_BINARY = {"type": "string", "format": "binary"}
_BODIES: dict[str, type] = {
    "create": Definition,
    "upsert": schemas.UpsertRequest,
    "remove": schemas.RemoveRequest,
    "get_items": schemas.GetRequest,
    "search": schemas.SearchRequest,
    "range_search": schemas.RangeRequest,
    "explain": schemas.ExplainRequest,
    "restore_snapshot": schemas.RestoreRequest,
}
_ANSWERS: dict[str, type] = {
    "search": schemas.SearchAnswer,
    "range_search": schemas.SearchAnswer,
    "upsert": schemas.Written,
    "remove": schemas.Written,
    "get_one": schemas.ItemOut,
}
_SUMMARIES = {
    "live": "Whether the process answers",
    "ready": "Whether it can be searched: 503 while it starts, rebuilds or stops",
    "metrics": "Metrics for Prometheus",
    "openapi": "This API as an OpenAPI 3.1 document",
    "about": "Version, kernel, limits",
    "clusters": "The clusters that the key may read: versions, shards, holders",
    "list_collections": "The collections that the key may read",
    "create": "Create a collection; again with the same definition changes nothing",
    "describe": "Definition, items, last change, checkpoint, memory",
    "delete": "Delete a collection for good",
    "fit": "Have hasher and weigher learn from all vectors",
    "upsert": "Write items, all or none, over those with their ids or keys",
    "page": "Items in ascending id, a page at a time",
    "remove": "Remove items by ids and keys, or by a filter",
    "get_items": "Items by ids and keys, and those that are missing",
    "get_one": "One item with its vector or code",
    "search": "The k nearest items of one query or of several",
    "range_search": "All items within a radius",
    "explain": "Plan, histogram, and what each bit of the hits pays",
    "import_items": "Import a parquet file; answers 202 with a job",
    "jobs": "The last imports, newest first",
    "job_get": "How far an import is, and the rows that failed",
    "job_delete": "End an import; what it has written stays",
    "snapshot": "Take a snapshot",
    "snapshots_of": "The snapshots that the server keeps, oldest first",
    "download_snapshot": "A snapshot as a tar file",
    "remove_snapshot": "Delete a snapshot",
    "restore_snapshot": "Put a snapshot in the place of a collection, or of none",
}
# Bodies that are no JSON, by route.
_FILES = {
    "upsert": "application/vnd.apache.arrow.stream",
    "import_items": "application/vnd.apache.parquet",
    "restore_snapshot": "application/x-tar",
}
_DOWNLOADS = {"download_snapshot": "application/x-tar", "metrics": "text/plain"}
_QUERY: dict[str, dict[str, tuple[str, dict[str, Any]]]] = {
    "page": {
        "after": ("the id before the first one", {"type": "string", "pattern": "^[0-9]{1,19}$"}),
        "limit": ("how many, 100 by default", {"type": "integer", "minimum": 1}),
        "filter": ("conditions, as JSON", {"type": "string"}),
        "values": ("true for codes and vectors", {"type": "string", "enum": ["true", "false"]}),
    },
    "import_items": {
        "id": ("the column of ids", {"type": "string"}),
        "key": ("the column of keys", {"type": "string"}),
        "value": ("the column of vectors or codes", {"type": "string"}),
        "payload": (
            "columns of the payload, with commas; by default all others",
            {"type": "string"},
        ),
    },
}
_IDS = ("string for ids as strings, which JavaScript does not round", {"enum": ["string"]})
_WITH_IDS = {"upsert", "page", "get_items", "get_one", "search", "range_search", "explain"}
# Statuses of success that are not 200 alone.
_DONE = {"create": ("200", "201"), "import_items": ("202",), "snapshot": ("201",)}
_ALWAYS = {
    "403": "the key does not allow it, the page is of another origin, or the server "
    "or the collection is read-only",
    "421": "the server has no such host",
}
_WITH_KEY = {"401": "no valid key", "429": "too many requests"}
_WITH_BODY = {
    "400": "not JSON, or cut off",
    "408": "the body came too slowly",
    "413": "the body is too long",
    "415": "the body is of another type",
    "422": "a value is not valid",
    "503": "too many long bodies arrive at the same time, or the server is stopping",
}
_CLUSTER = "it is a cluster, which can only be searched"
_OF_SEARCHES = {
    "409": "never fitted, or a cluster, which has neither keys nor payloads",
    "503": "shards of a cluster do not answer, as `missing` says; too many long bodies arrive at "
    "the same time; or the server is stopping",
    "504": "it took longer than its timeout",
}
_MORE: dict[str, dict[str, str]] = {
    "ready": {"503": "not ready"},
    "create": {"409": "there is one with another definition", "507": "the disk is full"},
    "describe": {"503": "it is being rebuilt"},
    "fit": {"409": "there is nothing to fit"},
    "upsert": {"507": "the disk is full"},
    "remove": {"507": "the disk is full"},
    "get_one": {"409": _CLUSTER, "422": "the id is not valid"},
    "page": {
        "400": "the filter is not JSON",
        "409": _CLUSTER,
        "422": "a parameter is not valid",
        "504": "the filter took longer than any request may",
    },
    "clusters": {"404": "there is no cluster that the key may read"},
    "search": _OF_SEARCHES,
    "range_search": _OF_SEARCHES,
    "explain": {"409": "never fitted, or a cluster", "504": "it took longer than its timeout"},
    "get_items": {"409": _CLUSTER},
    "snapshots_of": {"409": _CLUSTER},
    "download_snapshot": {"409": _CLUSTER},
    "import_items": {"507": "the disk is full"},
    "restore_snapshot": {"404": "there is no such snapshot", "507": "the disk is full"},
}
_REF = "#/components/schemas/{name}"


@functools.cache
def document() -> dict[str, Any]:
    """The document as a JSON object."""
    from bitweigh.server.app import ROUTES  # which serves this document

    kinds = sorted({*_BODIES.values(), *_ANSWERS.values()}, key=lambda kind: kind.__name__)
    references, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    by_kind = dict(zip(kinds, references, strict=True))
    for kind in {*kinds, schemas.Query, schemas.ItemIn, schemas.Hit, schemas.Missing}:
        for name, text in _described_fields(kind).items():
            components[kind.__name__]["properties"][name]["description"] = text
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_kind)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "bitweigh",
            "version": bitweigh.__version__,
            "summary": "Exact nearest binary codes under a weighted Hamming distance",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {**components, "Problem": _PROBLEM},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described_fields(kind: type) -> dict[str, str]:
    """The strings below the fields of a struct, which Python does not keep."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if not base.__module__.startswith("bitweigh."):
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        assert isinstance(tree, ast.ClassDef)
        for field, text in itertools.pairwise(tree.body):
            if not isinstance(field, ast.AnnAssign) or not isinstance(text, ast.Expr):
                continue
            assert isinstance(field.target, ast.Name)
            found[field.target.id] = inspect.cleandoc(ast.literal_eval(text.value))
    return found


def _operation(route: RouteOf, by_kind: dict[type, dict[str, Any]]) -> dict[str, Any]:
    name = route.answer.__name__
    operation_id = f"{name}_{route.method.lower()}" if name == "job" else name
    operation: dict[str, Any] = {
        "operationId": operation_id,
        "summary": _SUMMARIES[operation_id],
        "responses": _responses(route, by_kind),
    }
    if route.scope is not None:
        # Without keys a server on 127.0.0.1 asks for none.
        operation["security"] = [{"key": []}, {}]
        operation["x-scope"] = route.scope
    parameters = [
        {"name": part, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for part in _parameters(route.path)
    ]
    wanted = {**_QUERY.get(name, {}), **({"ids": _IDS} if name in _WITH_IDS else {})}
    parameters += [
        {"name": part, "in": "query", "description": text, "schema": schema}
        for part, (text, schema) in wanted.items()
    ]
    if parameters:
        operation["parameters"] = parameters
    content: dict[str, Any] = {}
    if name in _BODIES:
        content[_JSON] = {"schema": by_kind[_BODIES[name]]}
    if name in _FILES:
        content[_FILES[name]] = {"schema": _BINARY}
    if content:
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _responses(route: RouteOf, by_kind: dict[type, dict[str, Any]]) -> dict[str, Any]:
    """All statuses that a route answers with, and what comes with them."""
    name = route.answer.__name__
    if name in _DOWNLOADS:
        content = {_DOWNLOADS[name]: {"schema": _BINARY}}
    else:
        schema = by_kind.get(_ANSWERS.get(name, object)) or {"type": "object"}
        content = {_JSON: {"schema": schema}}
    responses: dict[str, Any] = {
        status: {"description": "done", "content": content} for status in _DONE.get(name, ("200",))
    }
    problems = dict(_ALWAYS)
    if route.scope is not None:
        problems |= _WITH_KEY
    if "{" in route.path and name not in ("create", "restore_snapshot"):
        problems["404"] = "there is no such thing"
    if name in _BODIES or name in _FILES:
        problems |= _WITH_BODY
    problems |= _MORE.get(name, {})
    problem = {"application/problem+json": {"schema": {"$ref": _REF.format(name="Problem")}}}
    for status in sorted(problems):
        responses[status] = {"description": problems[status], "content": problem}
    return responses


def _parameters(path: str) -> list[str]:
    return [part[1:-1] for part in path.split("/") if part.startswith("{")]


_PROBLEM = {
    "type": "object",
    "description": "RFC 9457",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
