"""The experiments use only public names of public modules of bitweigh."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import bitweigh_experiments

SOURCES = sorted(Path(bitweigh_experiments.__file__).parent.rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the full name of every bitweigh module or name imported or written with dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value  # of import_module and the like


def private(name: str) -> bool:
    first, *parts = name.split(".")
    dunder = "__version__"
    return first == "bitweigh" and any(part[:1] == "_" and part != dunder for part in parts)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_only_public_names_of_bitweigh_are_used(path: Path) -> None:
    tree = ast.parse(path.read_text())
    found = [name for name in imported(tree) if private(name)]
    assert not found, f"{path}: {found}"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from bitweigh._checks import as_k", True),
        ("from bitweigh import _core", True),
        ("import bitweigh.paper._tables", True),
        ("import bitweigh\nbitweigh._system.info()", True),
        ("importlib.import_module('bitweigh._core')", True),
        ("from bitweigh import Index, paper\npaper.MIWQ(codes, 32)", False),
        ("from bitweigh import __version__", False),
        ("from bitweigh_experiments.demo import _anything", False),
    ],
)
def test_private_names_would_be_seen(source: str, found: bool) -> None:
    assert any(private(name) for name in imported(ast.parse(source))) is found
