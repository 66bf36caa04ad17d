"""Look at the site as a phone and a desk show it: `python tools/look_at_pages.py SITE OUT`.

Saves pictures of the pages that most people see first, and says which pages of the site are wider
than the screen. Needs `pip install playwright` and a Chromium, which it does not download: Debian's
package `chromium` will do.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

SCREENS = {"phone": (390, 844), "desk": (1280, 900)}
PICTURED = ("docs/index", "docs/quickstart", "docs/how-it-works")
# What sticks out is named by its tag, its class and where it ends.
TOO_WIDE = """() => {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return null;
  const out = [...document.querySelectorAll("article *")]
    .filter((own) => own.getBoundingClientRect().right > page.clientWidth)
    .slice(0, 3)
    .map((own) => `${own.tagName.toLowerCase()}.${own.className}`);
  return `${page.scrollWidth} pixels: ${out.join(", ")}`;
}"""


def look(browser: Browser, site: Path, out: Path, dark: bool) -> Iterator[str]:
    """Take the pictures; yields what is too wide."""
    paths = [path.relative_to(site).with_suffix("") for path in sorted(site.rglob("*.html"))]
    # The first page of all only leads on to the map.
    pages = [path.as_posix() for path in paths if path != Path("index")]
    for screen, (width, height) in SCREENS.items():
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        for name in pages:
            page.goto((site / f"{name}.html").resolve().as_uri())
            if name in PICTURED:
                stem = f"{Path(name).name}-{screen}{'-dark' if dark else ''}"
                page.screenshot(path=out / f"{stem}.png")
                page.screenshot(path=out / f"{stem}-whole.png", full_page=True)
            wide = page.evaluate(TOO_WIDE)
            if wide:
                yield f"{name} on a {screen} of {width}: {wide}"
        page.close()


def main() -> int:
    """Run from the command line; 1 if a page is too wide."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", type=Path, help="the built site, such as build/docs")
    parser.add_argument("out", type=Path, help="a folder for the pictures; made if it is not there")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="the program")
    parser.add_argument("--dark", action="store_true", help="as those see it who prefer dark")
    given = parser.parse_args()
    if given.chromium is None:
        parser.error("no chromium on the path: install it, or name it by --chromium")
    if not (given.site / "docs" / "index.html").exists():
        parser.error(f"{given.site} holds no site: `make docs` makes it in build/docs")
    given.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=given.chromium, args=["--no-sandbox"])
        wide = list(look(browser, given.site, given.out, given.dark))
        browser.close()
    for line in wide:
        print(line)
    print(f"{len(wide)} too wide; pictures in {given.out}")
    return 1 if wide else 0


if __name__ == "__main__":
    sys.exit(main())
