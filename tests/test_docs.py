"""The examples in docstrings, README and docs run as written."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest
from console_blocks import ADDRESS, Shell
from running_server import running_server

import bitweigh
import bitweigh_experiments

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MODULES = [
    module.name
    for package in (bitweigh, bitweigh_experiments)
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if module.name not in ("bitweigh._core", "bitweigh._paper")
    and not module.name.endswith("__main__")
]


# Pages about the server, whose blocks in Python and for the shell run in turns.
SERVED_PAGES = [ROOT / "docs" / name for name in ("server.md", "operations.md", "security.md")]


@pytest.mark.parametrize("name", [name for name in MODULES if ".client" not in name])
def test_docstring_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_docstring_examples_of_the_client_run_with_a_server(tmp_path: Path) -> None:
    runner = doctest.DocTestRunner()
    with running_server(tmp_path) as url:
        for name in (name for name in MODULES if ".client" in name):
            for test in doctest.DocTestFinder().find(importlib.import_module(name)):
                for example in test.examples:
                    example.source = example.source.replace(ADDRESS, url)
                runner.run(test)
    assert runner.summarize().failed == 0
    assert runner.summarize().attempted > 5


@pytest.mark.parametrize("page", SERVED_PAGES, ids=lambda page: page.name)
def test_blocks_about_the_server_run_from_top_to_bottom(page: Path, tmp_path: Path) -> None:
    with Shell(tmp_path) as shell, contextlib.chdir(tmp_path):
        namespace: dict[str, object] = {}
        found = re.findall(
            r"^```(python|console)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL
        )
        assert found
        for kind, block in found:
            if kind == "python":
                source = block.replace(ADDRESS, shell.address)
                exec(compile(source, str(page), "exec"), namespace)
            else:
                shell.run(block)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in SERVED_PAGES], ids=lambda page: page.name
)
def test_python_blocks_run_from_top_to_bottom(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    namespace: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), namespace)


def test_the_readme_starts_with_a_runnable_example() -> None:
    first_screen = "".join(PAGES[0].read_text().splitlines(keepends=True)[:45])
    assert "pip install" in first_screen
    assert "```python" in first_screen


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_make_command_named_in_the_docs_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for command in re.findall(r"`make ([a-z-]+)`", page.read_text()):
            assert re.search(rf"^{command}:", makefile, re.MULTILINE), f"{page.name}: {command}"


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "docs" / "index.md"], ids=lambda page: page.name
)
def test_the_figure_on_the_first_screen_is_that_of_the_benchmarks(page: Path) -> None:
    results = (ROOT / "docs" / "benchmarks.md").read_text().partition("<!-- results -->")[2]
    commit = re.search(r"commit (\w+)", results)
    table = results.partition("### mixture, 1,000,000 codes of 64 bits\n")[2].strip()
    header, _, *rows = (line.strip("| ").split(" | ") for line in table.splitlines()[:4])
    column = header.index("k = 10")
    milliseconds = {row[0]: float(row[column].split()[0]) for row in rows}
    assert commit is not None
    shown = page.read_text()
    assert f"**{milliseconds['bitweigh']:.3f} ms per query**" in shown
    assert f"takes {milliseconds['bitweigh scan']:.3f} ms" in shown
    assert f"commit {commit[1]}" in shown


def test_the_reference_of_the_rest_api_is_fresh(tmp_path: Path) -> None:
    script = ROOT / "tools" / "write_rest_reference.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    fresh = (tmp_path / "rest.md").read_text()
    assert fresh == (ROOT / "docs" / "rest.md").read_text(), f"run {script.name}"
