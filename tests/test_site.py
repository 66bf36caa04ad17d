"""The site builds without warnings, loads nothing external, and has every page and name."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import bitweigh

ROOT = Path(__file__).parent.parent
OPTIONS = ("-q", "-W", "--keep-going", "-n", "-c", ROOT / "docs")
MODULES = (
    *("costs", "reference", "typing", "hashers", "weighers", "sklearn", "frames", "io"),
    *("evaluation", "paper", "cluster", "client"),
)
PACKAGES = ("furo", "myst_parser", "sphinx")

pytestmark = [
    pytest.mark.xdist_group("site"),
    pytest.mark.skipif(
        not all(importlib.util.find_spec(package) for package in PACKAGES),
        reason="the packages that build the site are missing: pip install '.[docs]'",
    ),
]


class Page(HTMLParser):
    """The resources, links and link targets of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.resources: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.ids.add(given["id"])
        if tag == "a":
            self.links.append(given.get("href", ""))
        else:
            self.resources += [given[name] for name in ("src", "href", "data") if name in given]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *OPTIONS, "-d", folder / "trees", ROOT, folder / "html"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "html"


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """All pages of the site, by path."""
    return {path.resolve(): Page(path.resolve()) for path in site.rglob("*.html")}


def test_pages_load_nothing_from_elsewhere(site: Path, pages: dict[Path, Page]) -> None:
    for page in pages.values():
        outside = [url for url in page.resources if urlsplit(url).netloc]
        assert outside == [], page.path.name
    for sheet in site.rglob("*.css"):
        urls = re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")]+)", sheet.read_text())
        assert [url for url in urls if urlsplit(url).netloc] == [], sheet.name


def test_every_link_leads_to_a_page_and_a_place_on_it(pages: dict[Path, Page]) -> None:
    for page in pages.values():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or page.path.name == "search.html":
                continue
            target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
            assert target.exists(), f"{page.path.name} links to {link}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].ids, f"{page.path.name}: {link}"


def test_every_page_can_be_reached_from_the_menu(site: Path) -> None:
    start = (site / "docs" / "index.html").read_text()
    menu = re.search(r'<div class="sidebar-tree">.*?</aside>', start, re.DOTALL)
    assert menu is not None
    for path in [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.rst")]:
        name = path.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert name == "index.html" or f'href="{name}"' in menu[0], f"docs/index.md lacks {name}"


def test_every_public_name_is_in_the_reference(pages: dict[Path, Page]) -> None:
    modules = [importlib.import_module(f"bitweigh.{name}") for name in MODULES]
    names = {f"bitweigh.{name}" for name in bitweigh.__all__}
    names |= {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    described = set().union(
        *(page.ids for path, page in pages.items() if path.parent.name == "reference")
    )
    described |= {name.removeprefix("module-") for name in described}
    assert sorted(names - described) == []


def test_the_first_page_leads_to_the_map(site: Path) -> None:
    assert 'content="0; url=docs/index.html"' in (site / "index.html").read_text()
