"""Routes of the server, of collections, jobs and snapshots."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec

import bitweigh
from bitweigh.server import snapshots
from bitweigh.server.calls import Call, Reply, decoded, json_reply
from bitweigh.server.clusters import ClusterCollection
from bitweigh.server.collection import Collection
from bitweigh.server.definition import Definition, check_name
from bitweigh.server.openapi import document
from bitweigh.server.problems import Problem
from bitweigh.server.schemas import RestoreRequest
from bitweigh.server.service import Searched, Service

__all__ = [
    "about",
    "clusters",
    "create",
    "delete",
    "describe",
    "download_snapshot",
    "fit",
    "job",
    "jobs",
    "list_collections",
    "live",
    "metrics",
    "openapi",
    "ready",
    "remove_snapshot",
    "restore_snapshot",
    "snapshot",
    "snapshots_of",
]

_PIECE = 1 << 20


async def live(service: Service, call: Call) -> Reply:
    """``GET /livez``: the process answers."""
    return json_reply({"status": "ok"})


async def ready(service: Service, call: Call) -> Reply:
    """``GET /readyz``: it can be searched."""
    waiting = [one.name for one in service.store.collections() if not one.ready]
    if service.draining or waiting:
        detail = "stopping" if service.draining else f"rebuilding {', '.join(waiting)}"
        raise Problem(503, "not-ready", detail, headers={"retry-after": "3"})
    return json_reply({"status": "ready"})


async def metrics(service: Service, call: Call) -> Reply:
    """``GET /metrics``, for Prometheus."""
    text = await service.in_thread(service.metrics.text)
    return Reply(200, text, b"text/plain; version=0.0.4; charset=utf-8")


async def openapi(service: Service, call: Call) -> Reply:
    """``GET /openapi.json``."""
    return json_reply(document())


async def about(service: Service, call: Call) -> Reply:
    """``GET /v1``: what this server is."""
    info = bitweigh.info()
    return json_reply(
        {
            "version": bitweigh.__version__,
            "kernel": info.kernel,
            "threads": info.threads,
            "read_only": service.settings.read_only,
            "embedder": service.embedder is not None,
            "uptime_seconds": round(time.time() - service.started, 1),
            "limits": {
                name: getattr(service.limits, name) for name in type(service.limits).__slots__
            },
        }
    )


async def list_collections(service: Service, call: Call) -> Reply:
    """``GET /v1/collections``: those that the key may read."""
    key = call.key
    listed = [
        {
            "name": one.name,
            "kind": one.definition.kind,
            "items": one.count(),
            "seq": one.seq,
            "cluster": isinstance(one, ClusterCollection),
        }
        for one in service.searched()
        if key is None or key.allows("read", one.name)
    ]
    return json_reply({"collections": listed})


async def create(service: Service, call: Call) -> Reply:
    """``PUT /v1/collections/{c}``; again with the same definition changes nothing."""
    limits = service.limits
    name = check_name(call.path_params["c"])
    definition = await call.json(Definition, limits.body_bytes, limits.slow_seconds)
    collection, created = await service.in_thread(service.store.create, name, definition)
    return json_reply(_described(collection), 201 if created else 200)


async def delete(service: Service, call: Call, collection: Collection) -> Reply:
    """``DELETE /v1/collections/{c}``."""
    await service.in_thread(service.store.delete, collection.name)
    return json_reply({"deleted": collection.name})


async def describe(service: Service, call: Call, collection: Searched) -> Reply:
    """``GET /v1/collections/{c}``."""
    if isinstance(collection, ClusterCollection):
        return json_reply(await service.in_thread(collection.described, pool=collection.pool))
    return json_reply(await service.in_thread(_described, collection))


def _described(collection: Collection) -> dict[str, Any]:
    memory = collection.memory()
    view = collection.view()
    facts: dict[str, Any] = {
        "name": collection.name,
        "definition": msgspec.to_builtins(collection.definition),
        "items": collection.count(),
        "seq": collection.seq,
        "fitted": collection.fitted,
        "ready": collection.ready,
        "n_bits": None if view.codes is None else view.codes.n_bits,
        "checkpoint": {
            "seq": collection.checkpoint_seq,
            "age_seconds": round(time.time() - collection.checkpoint_time, 1),
            "changes_since": collection.changes_since_checkpoint,
        },
        "memory": None if memory is None else {**memory._asdict(), "total": memory.total},
        "disk_full": collection.writer.disk_full,
    }
    return facts


async def clusters(service: Service, call: Call) -> Reply:
    """``GET /v1/cluster``: the clusters that the key may read, and how their shards are."""
    key = call.key
    listed = [
        await service.in_thread(one.status, pool=one.pool)
        for name, one in sorted(service.clusters.items())
        if key is None or key.allows("read", name)
    ]
    if not listed:
        raise Problem(404, "no-cluster", "this server has no cluster for you to read")
    return json_reply({"clusters": listed})


async def fit(service: Service, call: Call, collection: Collection) -> Reply:
    """``POST /v1/collections/{c}/fit``: hasher and weigher learn from all vectors."""
    count = await service.in_thread(collection.fit)
    return json_reply({"vectors": count, "seq": collection.seq})


async def jobs(service: Service, call: Call) -> Reply:
    """``GET /v1/jobs``."""
    key = call.key
    return json_reply(
        {
            "jobs": [
                one.as_json()
                for one in service.jobs.listed()
                if key is None or key.allows("read", one.collection)
            ]
        }
    )


async def job(service: Service, call: Call) -> Reply:
    """``GET /v1/jobs/{j}``, and ``DELETE`` to end it."""
    found = service.jobs[call.path_params["j"]]
    if call.key is not None and not call.key.allows("read", found.collection):
        raise Problem(404, "no-such-job", f"there is no job {found.id!r}")
    if call.method == "DELETE":
        if call.key is not None and not call.key.allows("write", found.collection):
            raise Problem(403, "not-allowed", "the key has no write access here")
        found.cancelled.set()
    return json_reply(found.as_json())


async def snapshot(service: Service, call: Call, collection: Collection) -> Reply:
    """``POST /v1/collections/{c}/snapshots``."""
    taken = await service.in_thread(snapshots.take_snapshot, service.store, collection)
    return json_reply(taken, 201)


async def snapshots_of(service: Service, call: Call, collection: Collection) -> Reply:
    """``GET /v1/collections/{c}/snapshots``."""
    listed = await service.in_thread(snapshots.list_snapshots, service.store, collection.name)
    return json_reply({"snapshots": listed})


async def download_snapshot(service: Service, call: Call, collection: Collection) -> Reply:
    """``GET /v1/collections/{c}/snapshots/{s}``: the tar file."""
    path = snapshots.snapshot_path(service.store, collection.name, call.path_params["s"])
    size = str(path.stat().st_size).encode()
    return Reply(
        200, b"", b"application/x-tar", [(b"content-length", size)], _pieces(service, path)
    )


async def _pieces(service: Service, path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while piece := await service.in_thread(file.read, _PIECE):
            yield piece


async def remove_snapshot(service: Service, call: Call, collection: Collection) -> Reply:
    """``DELETE /v1/collections/{c}/snapshots/{s}``."""
    name = call.path_params["s"]
    await service.in_thread(snapshots.delete_snapshot, service.store, collection.name, name)
    return json_reply({"deleted": name})


async def restore_snapshot(service: Service, call: Call) -> Reply:
    """``POST /v1/collections/{c}/restore``: a snapshot by name, or a tar file as the body."""
    limits = service.limits
    name = check_name(call.path_params["c"])
    if call.content_type == b"application/json":
        body = await call.body(limits.body_bytes, limits.slow_seconds)
        wanted = decoded(body, RestoreRequest).snapshot
        path = snapshots.snapshot_path(service.store, name, wanted)
        restored = await service.in_thread(snapshots.restore, service.store, name, path)
        return json_reply(_described(restored))
    if call.content_type != b"application/x-tar":
        raise Problem(
            415, "content-type", "content-type must be application/json or application/x-tar"
        )
    handle, staged = tempfile.mkstemp(".tar", "restore-", service.store.folder)
    try:
        with os.fdopen(handle, "wb") as file:
            async for piece in call.chunks(limits.import_bytes, limits.slow_seconds):
                file.write(piece)
        restored = await service.in_thread(snapshots.restore, service.store, name, Path(staged))
    except OSError as error:
        raise Problem(507, "disk-full", f"the file could not be kept: {error.strerror}") from error
    finally:
        Path(staged).unlink(missing_ok=True)
    return json_reply(_described(restored))
