"""The process of a server: sockets, signals, logs."""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import logging
import resource
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import uvicorn

from bitweigh.server.access_log import AccessLog
from bitweigh.server.app import App
from bitweigh.server.clusters import ClusterSource
from bitweigh.server.connections import protocol_of
from bitweigh.server.service import Embedder, Service
from bitweigh.server.settings import Settings

__all__ = ["check_host", "is_loopback", "serve"]

# Of the time to stop: for what clients on open connections are just sending, and for the last save.
_LINGER_SECONDS, _SAVE_SECONDS = 1.0, 2.0
# New objects after which Python looks for cycles among them; its default is 700.
_GARBAGE_OBJECTS = 5_000
# Files that are open beside connections: records, their logs, mapped indexes.
_OTHER_FILES = 4_096
_logger = logging.getLogger("bitweigh.server")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_host(host: str, keys: int, *, no_auth: bool) -> None:
    """Raise ValueError if strangers could use a server without a key."""
    if not keys and not no_auth and not is_loopback(host):
        raise ValueError(
            f"there are no keys, so only 127.0.0.1 is served, not {host}: create a key with "
            "`bitweigh serve keys add`, or say --no-auth"
        )


def serve(
    folder: Path,
    settings: Settings,
    *,
    host: str = "127.0.0.1",
    port: int = 8420,
    embedder: Embedder | None = None,
    clusters: Mapping[str, ClusterSource] | None = None,
    access_log: bool = True,
) -> None:
    """Serve a folder until SIGTERM or SIGINT; what was accepted is answered first."""
    _set_up_logs()
    log = AccessLog() if access_log else None
    _allow_files(settings.limits.connections + _OTHER_FILES)
    service = Service.of_folder(folder, settings, embedder, clusters)
    try:
        config = uvicorn.Config(
            App(service, log),
            host=host,
            port=port,
            loop="uvloop",
            http=protocol_of(settings.limits),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=True,
            proxy_headers=False,
            backlog=2048,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_drain_seconds(settings),
        )
        _collect_less_garbage()
        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(_Server(config, service).serve())
    finally:
        if log is not None:
            log.flush()
        service.close()


def _collect_less_garbage() -> None:
    """Leave what was made by the start out of later collections.

    Modules and their classes are hundreds of thousands of objects: a full collection, of which
    there is more than one a second under load, would stop all requests for 40 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_GARBAGE_OBJECTS)


def _drain_seconds(settings: Settings) -> int:
    """How long requests may still run, of the time from a signal to the end of the process."""
    return max(1, int(settings.drain_seconds - _LINGER_SECONDS - _SAVE_SECONDS))


def _allow_files(wanted: int) -> None:
    """Let the process have so many files and connections open, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


class _Server(uvicorn.Server):
    """The server of uvicorn; says when it is ready, and that it drains."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    async def startup(self, sockets: Any = None) -> None:  # noqa: ANN401
        await super().startup(sockets)
        if self.started:
            address = self.servers[0].sockets[0].getsockname()
            _logger.info("serving %s on http://%s:%d", self._service.store.folder, *address[:2])

    async def shutdown(self, sockets: Any = None) -> None:  # noqa: ANN401
        """Answer what open connections still send, and close each after that; then stop."""
        # Clients whose connections are closed open new ones: those must be refused, since what
        # waits to be accepted when a socket is closed is lost.
        for server in self.servers:
            server.close()
        self._service.closes_connections = True
        end = self._service.draining_since + _LINGER_SECONDS
        while self.server_state.connections and time.monotonic() < end and not self.force_exit:
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: Any) -> None:  # noqa: ANN401, ARG002
        self._service.drain()
        if sig == signal.SIGINT and self.should_exit:
            self.force_exit = True
        else:
            self.should_exit = True


def _set_up_logs() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    for name in ("bitweigh.server", "uvicorn"):
        logger = logging.getLogger(name)
        logger.handlers[:] = [handler]
        logger.setLevel(logging.INFO if name == "bitweigh.server" else logging.WARNING)
        logger.propagate = False
