"""S3 as moto answers it, in a process of its own, and writes to it that fail."""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

__all__ = ["failing_writes", "s3_bucket"]


@contextlib.contextmanager
def s3_bucket() -> Iterator[str]:
    """The URL of an empty bucket; processes that are started meanwhile reach it as this one."""
    import boto3

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    endpoint = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        with tempfile.TemporaryDirectory(prefix="bitweigh-cache-") as cache:
            settings = {
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_ACCESS_KEY_ID": "testing",
                "AWS_SECRET_ACCESS_KEY": "testing",
                "AWS_REGION": "us-east-1",
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_ALLOW_HTTP": "true",
                "BITWEIGH_CACHE": cache,
            }
            with mock.patch.dict(os.environ, settings):
                _wait_for(port)
                boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="bucket")
                yield "s3://bucket/shards"
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def failing_writes(nth: int) -> Iterator[Callable[[], int]]:
    """Let every `nth` write of this process fail; yields a function that counts the failures."""
    import obstore

    writes = itertools.count(1)
    failures = 0
    put = obstore.put

    def sometimes(*arguments: Any, **options: Any) -> Any:  # noqa: ANN401 as `put`
        nonlocal failures
        if next(writes) % nth == 0:
            failures += 1
            raise OSError("the store is out of order")
        return put(*arguments, **options)

    with mock.patch.object(obstore, "put", sometimes):
        yield lambda: failures


def _wait_for(port: int, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
        else:
            return
