"""Take the screenshots of the page that the docs show: `python tools/screenshot_page.py [FOLDER]`.

It starts the demo's documents on a server of their own and drives Debian's Chromium by playwright:
`make tools` and `make test-all` install both. By default the pictures go to docs/page.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

FOLDER = Path(__file__).parent.parent / "docs" / "page"
QUERY = "sort a list by key"
WIDE, NARROW = (1100, 760), (360, 760)


class Picture(NamedTuple):
    """A view of the page, and what is done to it before the picture."""

    name: str
    view: str
    wait: str
    do: Callable[[Any], None] | None = None
    scheme: str = "light"
    size: tuple[int, int] = WIDE


def compare(page: Any) -> None:  # noqa: ANN401
    """Show plain Hamming beside the hits."""
    page.get_by_label("Compare with plain Hamming").check()
    page.locator(".beside section:nth-child(2) .strip").nth(9).wait_for()


def choose_fifth(page: Any) -> None:  # noqa: ANN401
    """Compare the first hit with the fifth."""
    page.get_by_label("the other item").select_option(index=4)


def mute_ten(page: Any) -> None:  # noqa: ANN401
    """Mute the ten heaviest bits."""
    for place in range(10):
        page.locator(".bar").nth(place).click()
    page.get_by_text("10 muted").wait_for()
    page.mouse.move(0, 0)


PICTURES = (
    Picture("search", "search", ".hit .strip", compare),
    Picture("why", "why", ".compare", choose_fifth),
    Picture("weights", "weights", ".ranking li", mute_ten),
    Picture("how", "how", ".plot canvas", scheme="dark"),
    Picture("narrow", "why", ".compare", scheme="dark", size=NARROW),
)


@contextmanager
def demo() -> Iterator[str]:
    """The demo's texts about Python, the same everywhere, on a free port; gives the address."""
    script = Path(sys.executable).with_name("bitweigh")
    command = [str(script), "demo", "--serve", "--python", "--port", "0"]
    # A cache of its own: a demo that runs already keeps the other one for itself.
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        with subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stderr is not None
            said = ""
            try:
                for line in process.stderr:
                    said += line
                    found = re.search(r"serving .* on (http://\S+)", line)
                    if found:
                        yield found[1]
                        return
                raise SystemExit(said)
            finally:
                process.terminate()


def main() -> int:
    """Take all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with demo() as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        for picture in PICTURES:
            width, height = picture.size
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme=picture.scheme,
                reduced_motion="reduce",
            )
            # The first visit warms up, so that the picture has the times of a usual search.
            for _ in range(2):
                page.goto("about:blank")
                page.goto(f"{url}/#{picture.view}?{urlencode({'c': 'documents', 'q': QUERY})}")
                page.wait_for_selector(picture.wait)
            if picture.do is not None:
                picture.do(page)
            page.wait_for_timeout(300)
            page.screenshot(path=folder / f"{picture.name}.png")
            page.close()
            print(folder / f"{picture.name}.png")
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
