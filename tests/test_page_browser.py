"""The page in a browser: every view, small and large, light and dark, and what goes wrong."""

from __future__ import annotations

import base64
import io
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from running_server import started_server, stop
from tools_needed import skip_or_fail

pytestmark = pytest.mark.tools

BIG = 2**60 + 1
PICTURE = (
    "data:image/png;base64,"
    + base64.b64encode(
        bytes.fromhex(
            "89504e470d0a1a0a0000000d494844520000000100000001080200000090"
            "7753de0000000c4944415408d763d8b061030004140209d8e9c7e30000000049454e44ae426082"
        )
    ).decode()
)
VIEWS = ("search", "why", "weights", "how", "browse", "import", "health")
SHOWN = {
    "search": ".hit",
    "why": ".strip",
    "weights": ".bar",
    "how": ".plot canvas",
    "browse": ".hit",
    "import": ".drop",
    "health": "meter",
}
# Where screenshots are kept, if somebody wants to look at them.
SHOTS = os.environ.get("BITWEIGH_SCREENSHOTS")


def fill(url: str) -> None:
    """A collection of 300 codes with payloads that are hard to show."""
    rng = np.random.default_rng(0)
    hard: dict[int, dict[str, Any]] = {
        0: {"title": "<script>window.stolen = 1</script><img src=x onerror='window.stolen = 1'>"},
        1: {"title": "ספרים ומילים: שלום", "lang": "he"},
        2: {"title": "A picture", "picture": PICTURE, "svg": "data:image/svg+xml;base64,PHN2Zy8+"},
        3: {"title": "An address", "image": "https://example.org/cat.png"},
    }
    codes = rng.integers(0, 256, (300, 8), dtype=np.uint8)
    codes[:6] = codes[0]
    codes[np.arange(1, 6), np.arange(1, 6)] ^= 5
    items = []
    for place, code in enumerate(codes):
        payload = hard.get(place, {"title": f"Item {place}", "lang": ("de", "fr")[place % 2]})
        id_ = BIG + 2 * place if place == 5 else place
        text = base64.b64encode(code.tobytes()).decode()
        items.append({"id": str(id_), "code": text, "payload": payload})
    here = f"{url}/v1/collections/things"
    for path, body in (("", {"kind": "codes", "n_bits": 64}), ("/items", {"items": items})):
        assert httpx.put(here + path, json=body).status_code < 300


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip_or_fail("playwright is missing: pip install playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        skip_or_fail("chromium is missing: `make tools` installs it")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    process, address = started_server(str(tmp_path_factory.mktemp("page")), "--quiet")
    fill(address)
    yield address
    stop(process)


class Watched:
    """A page, the errors in its console, and the addresses that it asked."""

    def __init__(self, browser: Any, width: int = 1100, scheme: str = "light") -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page.set_default_timeout(10_000)
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda said: said.type == "error" and self.errors.append(said.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def check(self, url: str) -> None:
        assert not self.errors
        assert all(one.startswith((url, "data:image/")) for one in self.asked), self.asked
        wide = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{wide} pixels too wide"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1100])
def test_every_view_shows_itself(browser: Any, url: str, width: int, scheme: str) -> None:
    watched = Watched(browser, width, scheme)
    page = watched.page
    for view in VIEWS:
        page.goto(f"{url}/#{view}?c=things&q=%230&k=5")
        page.wait_for_selector(SHOWN[view])
        assert page.locator("nav a[aria-current=page]").inner_text().lower() == view
        assert page.locator(".problem").count() == 0
        if SHOTS:
            page.wait_for_timeout(200)
            page.screenshot(path=Path(SHOTS) / f"{view}-{width}-{scheme}.png", full_page=True)
        watched.check(url)
        unnamed = page.evaluate(
            "[...document.querySelectorAll('button, input, select')].filter((one) =>"
            " !(one.labels?.length || one.textContent.trim() || one.ariaLabel)).length"
        )
        assert unnamed == 0
    page.close()


def test_payloads_are_text_and_nothing_foreign_is_loaded(browser: Any, url: str) -> None:
    watched = Watched(browser)
    page = watched.page
    page.goto(f"{url}/#browse?c=things")
    page.wait_for_selector(".hit")
    assert page.get_by_text("<script>window.stolen").count() == 1
    assert page.evaluate("window.stolen") is None
    assert page.locator("img.thumb").count() == 1
    assert page.locator("a[href='https://example.org/cat.png']").count() == 1
    hebrew = page.get_by_text("ספרים")
    assert hebrew.evaluate("one => getComputedStyle(one).direction") == "rtl"
    page.get_by_role("button", name="he", exact=True).click()
    page.wait_for_selector(".chip")
    page.get_by_text("Item 4").wait_for(state="detached")
    assert page.locator(".hit").count() == 1
    watched.check(url)
    page.close()


def test_keyboard_alone_searches_and_large_ids_are_not_rounded(browser: Any, url: str) -> None:
    watched = Watched(browser)
    page = watched.page
    page.goto(url)
    page.wait_for_selector("input[type=search]")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.type") == "search":
            break
    page.keyboard.type(f"#{BIG + 10}")
    page.keyboard.press("Enter")
    page.wait_for_selector(".hit")
    page.goto(f"{url}/#search?c=things&q=%230")
    page.get_by_text(f"#{BIG + 10}", exact=True).wait_for()
    page.get_by_label("Plain Hamming beside it").check()
    page.get_by_text("are among the weighted hits").wait_for()
    page.get_by_text("This request as curl and Python").click()
    assert "/v1/collections/things/search" in page.locator("pre").first.inner_text()
    watched.check(url)
    page.close()


def test_a_muted_bit_changes_the_ranking(browser: Any, url: str) -> None:
    watched = Watched(browser)
    page = watched.page
    page.goto(f"{url}/#weights?c=things&q=%230&k=10")
    page.get_by_text("0 of 10 places changed").wait_for()
    page.locator(".bar").first.focus()
    for _ in range(40):
        page.keyboard.press("m")
        page.keyboard.press("ArrowRight")
    page.get_by_text("40 of 64 changed").wait_for()
    page.get_by_text(re.compile(r"[1-9]\d* of 10 places changed")).wait_for()
    page.get_by_role("button", name="Reset").click()
    page.get_by_text("0 of 10 places changed").wait_for()
    watched.check(url)
    page.close()


def test_a_parquet_file_is_imported_with_errors_by_row(browser: Any, url: str) -> None:
    httpx.put(f"{url}/v1/collections/new", json={"kind": "codes", "n_bits": 64})
    codes: list[bytes] = [bytes([row] * 8) for row in range(50)]
    codes[7] = b"short"
    table = pa.table({"id": list(range(50)), "name": ["x"] * 50, "code": codes})
    out = io.BytesIO()
    pq.write_table(table, out)
    watched = Watched(browser)
    page = watched.page
    page.goto(f"{url}/#import?c=new")
    file = {"name": "rows.parquet", "mimeType": "", "buffer": out.getvalue()}
    page.set_input_files("input[type=file]", file)
    page.get_by_text("3 columns").wait_for()
    assert page.get_by_label("Vectors or codes").input_value() == "code"
    page.get_by_role("button", name="Import").click()
    page.get_by_text("Import done").wait_for()
    page.get_by_text("49 of 50 rows written").wait_for()
    assert page.locator("tbody tr").count() == 1
    page.set_input_files("input[type=file]", {**file, "buffer": b"no parquet at all"})
    page.get_by_text("is not a parquet file").wait_for()
    watched.check(url)
    page.close()


def test_a_wrong_key_is_refused_and_the_right_one_remembered(browser: Any, tmp_path: Path) -> None:
    from bitweigh.server.keys import KeyFile

    secret = KeyFile(tmp_path / "keys.json").add("reader", "read", [])
    process, address = started_server(str(tmp_path), "--quiet")
    try:
        page = Watched(browser).page
        page.goto(address)
        page.get_by_label("Key").fill("bw_wrong")
        page.keyboard.press("Enter")
        page.get_by_text("does not know this key").wait_for()
        page.get_by_label("Key").fill(secret)
        page.keyboard.press("Enter")
        page.get_by_text("no collections yet").wait_for()
        page.reload()
        page.get_by_text("no collections yet").wait_for()
        assert page.evaluate("localStorage.length") == 0
        page.close()
    finally:
        stop(process)


def test_the_page_says_that_the_server_is_gone_and_recovers(browser: Any, tmp_path: Path) -> None:
    process, address = started_server(str(tmp_path), "--quiet")
    fill(address)
    page = Watched(browser).page
    page.goto(f"{address}/#search?c=things&q=%230")
    page.wait_for_selector(".hit")
    process.kill()
    process.communicate()
    page.fill("input[type=search]", "#1")
    page.keyboard.press("Enter")
    page.get_by_text("This page tries again").wait_for()
    port = address.rpartition(":")[2]
    process, _ = started_server(str(tmp_path), "--quiet", "--port", port)
    try:
        page.get_by_text("This page tries again").wait_for(state="detached")
        page.wait_for_selector(".hit")
        page.close()
    finally:
        stop(process)
