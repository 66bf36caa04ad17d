"""Take screenshots of the site on a phone and a desktop: `python tools/look_at_pages.py SITE OUT`.

Saves screenshots of the most visited pages, and lists all pages that are wider than the screen.
Needs `pip install playwright` and a Chromium, which it does not download: Debian's package
`chromium` will do.
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
# Returns the width of the page and up to three elements that stick out, by tag and class.
TOO_WIDE = """() => {
  const page = document.documentElement;
  if (page.scrollWidth <= page.clientWidth) return null;
  const out = [...document.querySelectorAll("article *")]
    .filter((element) => element.getBoundingClientRect().right > page.clientWidth)
    .slice(0, 3)
    .map((element) => `${element.tagName.toLowerCase()}.${element.className}`);
  return `${page.scrollWidth} pixels: ${out.join(", ")}`;
}"""


def look(browser: Browser, site: Path, out: Path, dark: bool) -> Iterator[str]:
    """Take the screenshots; yield a line for each page that is too wide."""
    paths = [path.relative_to(site).with_suffix("") for path in sorted(site.rglob("*.html"))]
    # The root page only redirects to docs/index.
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
    """Run the command; return 1 if a page is too wide."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("site", type=Path, help="the built site, such as build/docs")
    parser.add_argument("out", type=Path, help="folder for the screenshots; created if missing")
    parser.add_argument("--chromium", default=shutil.which("chromium"), help="path of Chromium")
    parser.add_argument("--dark", action="store_true", help="use the dark colour scheme")
    arguments = parser.parse_args()
    if arguments.chromium is None:
        parser.error("no chromium on the PATH: install it, or pass --chromium")
    if not (arguments.site / "docs" / "index.html").exists():
        parser.error(f"{arguments.site} holds no site: `make docs` builds it in build/docs")
    arguments.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=arguments.chromium, args=["--no-sandbox"]
        )
        wide = list(look(browser, arguments.site, arguments.out, arguments.dark))
        browser.close()
    for line in wide:
        print(line)
    print(f"{len(wide)} too wide; screenshots in {arguments.out}")
    return 1 if wide else 0


if __name__ == "__main__":
    sys.exit(main())
