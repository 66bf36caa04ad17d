"""A server: collections over HTTP, kept on disk. ``bitweigh serve FOLDER`` starts it.

``app(folder)`` returns the same as an ASGI application, for servers of your own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bitweigh._optional import optional

for _package in ("msgspec", "orjson", "prometheus_client", "pyarrow", "starlette", "uvicorn"):
    optional(_package, "server")

from bitweigh.server.app import App  # noqa: E402 after the check that it can be imported
from bitweigh.server.clusters import ClusterSource  # noqa: E402
from bitweigh.server.service import Embedder, Service  # noqa: E402
from bitweigh.server.settings import Limits, Settings  # noqa: E402
from bitweigh.server.store import FolderInUseError  # noqa: E402

__all__ = ["App", "FolderInUseError", "Limits", "Settings", "app"]


def app(
    folder: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    embedder: Embedder | None = None,
    clusters: Mapping[str, ClusterSource] | None = None,
) -> App:
    """An ASGI application that serves a folder.

    Parameters
    ----------
    folder : str or path
        Where everything is kept; created if it is not there. One process at a time may serve it.
    settings : Settings, optional
        Limits of requests, and how data are kept.
    embedder : function, optional
        Turns a list of texts into vectors (n, dim), for searches by text.
    clusters : dict, optional
        Clusters to search under these names: what :func:`bitweigh.cluster.open` or
        :func:`bitweigh.cluster.connect` returned, a folder or URL to open, or "ray:NAME" to
        connect to. They are only read.

    Returns
    -------
    App
        ``app.service.close()`` saves everything and gives the folder up.

    Examples
    --------
    >>> import tempfile
    >>> from bitweigh import server
    >>> application = server.app(tempfile.mkdtemp())
    >>> application.service.store.collections()
    []
    >>> application.service.close()

    """
    chosen = settings or Settings()
    return App(Service.of_folder(Path(folder), chosen, embedder, clusters))
