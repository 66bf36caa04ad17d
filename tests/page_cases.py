"""Collections whose items are hard to show, and a server that has them."""

from __future__ import annotations

import base64
import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from running_server import started_server, stop

import bitweigh.cluster

__all__ = ["BIG", "VECTOR", "choose_file", "create", "fill", "parquet", "picture", "served_page"]

BIG = 2**60 + 11
"""An id that is no double."""
VECTOR = [round(0.1 + (place % 7) ** 3 * (-1) ** place, 2) for place in range(64)]
"""A query whose bits weigh differently."""
_HEBREW = "ספרים ומילים: שלום"
_LONG = "A long text without an end. " * 60


def picture(red: int, green: int, blue: int) -> str:
    """A PNG of 32 x 32 pixels of one colour, in base64."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = (b"\0" + bytes([red, green, blue]) * 32) * 32
    head = struct.pack(">IIBBBBB", 32, 32, 8, 2, 0, 0, 0)
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows))
    return base64.b64encode(png + chunk(b"IEND", b"")).decode()


HARD: dict[int, dict[str, Any]] = {
    0: {"title": "<script>window.stolen = 1</script><img src=x onerror='window.stolen = 1'>"},
    1: {"title": _HEBREW, "lang": "he", "note": f"{_HEBREW}. " * 20},
    2: {
        "title": "Pictures",
        "by itself": picture(200, 60, 20),
        "as an address": "data:image/png;base64," + picture(30, 90, 160),
        "svg": "data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=",
        "broken": "data:image/png;base64,AAAA",
    },
    3: {"title": "An address", "image": "https://example.org/cat.png", "js": "javascript:alert(1)"},
    4: {"title": "Long " + "word" * 60, "text": _LONG, "n": 3.5, "list": [1, {"a": None}]},
    6: {},
    7: {"title": "", "empty": "", "none": None, "yes": True, "no": False, "zero": 0},
    8: {"a.b": "a name with a dot", 'quote"d': "a name with a quote", "lang": "de"},
}


def codes(count: int, n_bits: int = 64) -> np.ndarray[Any, Any]:
    """Packed codes in clusters, whose neighbours differ in few bits; uint8 (count, n_bits / 8)."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 2, (max(1, count // 50), n_bits), dtype=np.uint8)
    bits = centres[rng.integers(0, len(centres), count)]
    bits ^= (rng.random((count, n_bits)) < 0.1).astype(np.uint8)
    return np.packbits(bits, axis=1)


def create(url: str, name: str, items: list[dict[str, Any]], n_bits: int = 64) -> None:
    """A collection of codes."""
    here = f"{url}/v1/collections/{name}"
    for path, body in (
        ("", {"kind": "codes", "n_bits": n_bits}),
        ("/items", {"items": items}),
    ):
        if path and not items:
            continue
        answer = httpx.put(here + path, json=body)
        assert answer.status_code < 300, answer.text


def things() -> list[dict[str, Any]]:
    """300 items, of which the first have payloads that are hard to show."""
    items = []
    for place, code in enumerate(codes(300)):
        payload = HARD.get(place, {"title": f"Item {place}", "lang": ("de", "fr")[place % 2]})
        id_ = BIG if place == 5 else place
        text = base64.b64encode(code.tobytes()).decode()
        items.append({"id": str(id_), "code": text, "payload": payload})
    return items


def fill(url: str) -> None:
    """Collections of 300 items, of one, of none, and of a few with keys."""
    create(url, "things", things())
    create(url, "one", things()[1:2])
    create(url, "none", [])
    keyed = [{"key": f"key {n}", **item} for n, item in enumerate(things()[9:20])]
    for item in keyed:
        del item["id"]
    create(url, "keyed", keyed)


def parquet(rows: int = 50) -> bytes:
    """A parquet file of codes of 64 bits, of which that of row 7 is too short."""
    values: list[bytes] = [bytes([row % 251] * 8) for row in range(rows)]
    values[7] = b"short"
    table = pa.table({"id": list(range(rows)), "name": ["x"] * rows, "code": values})
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def choose_file(page: Any, content: bytes | None = None, name: str = "rows.parquet") -> None:
    """Choose a parquet file to import, that of `parquet` by default."""
    file = {"name": name, "mimeType": "", "buffer": parquet() if content is None else content}
    page.set_input_files("input[type=file]", file)


@contextmanager
def served_page(folder: Path, *options: str) -> Iterator[str]:
    """A server with the collections of `fill`, and a cluster of three shards; gives its address."""
    bitweigh.cluster.build(codes(2000), str(folder / "shards"), shards=3)
    cluster = f"books={folder / 'shards'}"
    process, url = started_server(str(folder / "data"), "--quiet", "--cluster", cluster, *options)
    try:
        fill(url)
        yield url
    finally:
        stop(process)
