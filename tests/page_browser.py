"""A browser that watches a page: its errors, the addresses it asks, and whether it fits."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tools_needed import skip_or_fail

__all__ = ["VIEWS", "Watched", "browser", "launched", "page", "watched"]

VIEWS = ("search", "why", "weights", "how", "browse", "import", "health")
# Where screenshots are kept, if somebody wants to look at them.
_SHOTS = os.environ.get("BITWEIGH_SCREENSHOTS")
# No requests to Google's hosts, and no sandbox, which root cannot have.
_ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def launched() -> Iterator[Any]:
    """Debian's Chromium, driven by playwright."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        skip_or_fail("playwright is missing: pip install playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        skip_or_fail("chromium is missing: `make tools` installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=_ARGUMENTS)
        yield browser
        browser.close()


class Watched:
    """A page, the errors in its console, and the addresses that it asked."""

    def __init__(
        self, browser: Any, width: int = 1100, scheme: str = "light", refused: str = ""
    ) -> None:
        """Open an empty page; `refused` is a status that the console may report, such as "401"."""
        self.page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page.set_default_timeout(10_000)
        self.name = f"{width}-{scheme}"
        self.errors: list[str] = []
        self.asked: list[str] = []
        expected = f"the server responded with a status of {refused}" if refused else "\0"
        self.page.on(
            "console",
            lambda said: (
                said.type == "error" and expected not in said.text and self.errors.append(said.text)
            ),
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def check(self, url: str, name: str = "") -> None:
        """No error, no foreign request, nothing wider than the window, nothing that axe minds."""
        self.page.evaluate(
            "Promise.allSettled(document.getAnimations().map((one) => one.finished))"
        )
        if _SHOTS and name:
            self.page.screenshot(path=Path(_SHOTS) / f"{name}-{self.name}.png", full_page=True)
        assert not self.errors
        assert all(one.startswith((url, "data:image/")) for one in self.asked), self.asked
        of_ids = [one for one in self.asked if "/v1/" in one and "/import" not in one]
        assert all("ids=string" in one for one in of_ids), of_ids
        wide = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, f"{wide} pixels too wide"
        found = _findings(self.page)
        assert not found, "\n".join(found)

    def close(self) -> None:
        """Close the page."""
        self.page.close()


def _findings(page: Any) -> list[str]:
    """What axe-core finds, all of it, the least serious too."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        skip_or_fail("axe is missing: pip install axe-playwright-python")
    found = Axe().run(page).response["violations"]
    return [
        f"{one['impact']} {one['id']}: {one['help']}: "
        + "; ".join(str(node["html"])[:200] for node in one["nodes"][:3])
        for one in found
    ]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser for the tests of a module."""
    with launched() as found:
        yield found


@pytest.fixture
def watched(browser: Any) -> Iterator[Watched]:
    """An empty page that is watched."""
    found = Watched(browser)
    yield found
    found.close()


@pytest.fixture
def page(watched: Watched) -> Any:
    """An empty page, for tests that only drive it."""
    return watched.page
