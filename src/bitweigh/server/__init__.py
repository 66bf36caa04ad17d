"""A server: collections over HTTP, kept on disk. ``bitweigh serve FOLDER`` starts it.

``app(folder)`` returns the same as an ASGI application, for servers of your own.
"""

from __future__ import annotations

import os
from pathlib import Path

from bitweigh._optional import optional

for _package in ("msgspec", "orjson", "prometheus_client", "pyarrow", "starlette", "uvicorn"):
    optional(_package, "server")

from bitweigh.server.app import App  # noqa: E402 after the check that it can be imported
from bitweigh.server.service import Embedder, Service  # noqa: E402
from bitweigh.server.settings import Limits, Settings  # noqa: E402
from bitweigh.server.store import FolderInUseError, Store  # noqa: E402

__all__ = ["App", "FolderInUseError", "Limits", "Settings", "app"]


def app(
    folder: str | os.PathLike[str],
    settings: Settings | None = None,
    *,
    embedder: Embedder | None = None,
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
    return App(Service(Store(Path(folder), chosen), chosen, embedder))
