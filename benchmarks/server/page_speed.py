"""Milliseconds until the page can be used, and from Enter to hits, in a browser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import numpy as np

from benchmarks.server.processes import ServerProcess
from bitweigh.client import Client

__all__ = ["PageTimes", "serving_codes", "times_of_page"]

NAME = "items"
N_BITS = 64
_BITS_FLIPPED = 0.1
_ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
# In the page itself: the clock of the driver would add its own way to the browser and back.
_UNTIL_HITS = """async (typed) => {
    const box = document.querySelector("input[type=search]");
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set;
    set.call(box, typed);
    box.dispatchEvent(new Event("input", { bubbles: true }));
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    const begin = performance.now();
    const at = {};
    const done = new Promise((resolve) => {
        new MutationObserver((_, observer) => {
            if (document.querySelector(".hit")) at.hits ??= performance.now() - begin;
            if (!document.querySelector(".hit .strip")) return;
            observer.disconnect();
            at.bits = performance.now() - begin;
            resolve(at);
        }).observe(document.body, { childList: true, subtree: true });
    });
    box.form.requestSubmit();
    return done;
}"""


class PageTimes(NamedTuple):
    """Of one visit, in milliseconds."""

    ready: float
    """From the start of the navigation until there is a box to type in."""
    hits: float
    """From Enter until hits are shown."""
    bits: float
    """From Enter until each has its bits."""


@contextmanager
def serving_codes(folder: Path, rows: int) -> Iterator[str]:
    """A server with `rows` clustered codes of 64 bits, with payloads; gives its address."""
    rng = np.random.default_rng(0)
    centres = rng.integers(0, 2, (max(1, rows // 50), N_BITS), dtype=np.uint8)
    server = ServerProcess(folder / "data", folder / "log")
    url = f"http://127.0.0.1:{server.port}"
    try:
        with Client(url, timeout=600) as client:
            items = client.create(NAME, kind="codes", n_bits=N_BITS)
            for first in range(0, rows, 100_000):
                ids = np.arange(first, min(rows, first + 100_000))
                bits = centres[rng.integers(0, len(centres), len(ids))]
                bits ^= (rng.random(bits.shape) < _BITS_FLIPPED).astype(np.uint8)
                payloads = [{"title": f"Item {id_}", "group": int(id_) % 7} for id_ in ids]
                items.add(np.packbits(bits, axis=1), ids=ids, payloads=payloads, progress=False)
        yield url
    finally:
        server.stop()


def times_of_page(
    url: str, collection: str, queries: list[str], visits: int
) -> Iterator[PageTimes]:
    """Visit the page `visits` times with an empty cache, and search once on each visit."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        raise FileNotFoundError("chromium is missing: `make tools` installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        for visit in range(visits):
            context: Any = browser.new_context()
            page = context.new_page()
            page.goto(f"{url}/#search?{urlencode({'c': collection})}", wait_until="commit")
            page.wait_for_selector("input[type=search]")
            ready = page.evaluate("performance.now()")
            found = page.evaluate(_UNTIL_HITS, queries[visit % len(queries)])
            context.close()
            yield PageTimes(ready, found["hits"], found["bits"])
        browser.close()
