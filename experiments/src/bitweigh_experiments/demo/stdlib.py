"""Collects the shipped documents: run this module and send its output to texts/python.txt.

A line for each public module, class, function and method of the standard library that runs it, with
the first sentence of its docstring; of equal sentences the first.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import pkgutil
import re
import sys
import warnings
from collections.abc import Iterator

__all__ = ["first_sentence", "main", "summaries"]

# Tests, demos, what left Python since, and modules that do things when they are imported.
SKIPPED = {
    *("antigravity", "distutils", "idlelib", "lib2to3", "ntpath", "pydoc_data", "test", "this"),
    "turtledemo",
}
# Names that people know better.
KNOWN_AS = {"genericpath": "os.path", "posix": "os", "posixpath": "os.path"}
# Characters of a sentence that says something, and is a sentence.
SHORTEST, LONGEST = 15, 160

HEADER = """\
# Names and first sentences of docstrings of the Python {version} standard library.
# Copyright (c) 2001-2023 Python Software Foundation; All Rights Reserved.
# Licence: PSF-2.0, see LICENSE-PSF.txt beside this file.
# Changes: only first sentences, on one line each, of public names; equal ones once.
"""


def summaries() -> Iterator[tuple[str, str]]:
    """Names and first sentences, each sentence once."""
    seen = set()
    for module_name in _module_names():
        for name, thing in _public(module_name):
            summary = first_sentence(getattr(thing, "__doc__", None))
            if "XXX" in summary:  # a placeholder
                continue
            if SHORTEST <= len(summary) <= LONGEST and summary not in seen:
                seen.add(summary)
                first, dot, rest = name.partition(".")
                yield KNOWN_AS.get(first, first) + dot + rest, summary


def main() -> None:
    """Print the file."""
    lines = [f"{name}\t{summary}" for name, summary in summaries()]
    version = ".".join(map(str, sys.version_info[:2]))
    print(HEADER.format(version=version) + "\n".join(lines))


def _module_names() -> list[str]:
    """Public modules, those in packages included."""
    names = []
    for name in sorted(sys.stdlib_module_names):
        if name.startswith("_") or name in SKIPPED:
            continue
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            path = getattr(module, "__path__", [])
            names += [name, *(f"{name}.{part.name}" for part in pkgutil.iter_modules(path))]
    return [name for name in names if "._" not in name and ".test" not in name]


def _public(module_name: str) -> Iterator[tuple[str, object]]:
    """A module and what it defines or offers, with their names."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            module = importlib.import_module(module_name)
    except (ImportError, SystemExit):
        return
    yield module_name, module
    for name, thing in sorted(vars(module).items()):
        if name.startswith("_") or not (inspect.isclass(thing) or inspect.isroutine(thing)):
            continue
        home = getattr(thing, "__module__", None) or module_name
        if home.split(".")[0].lstrip("_") != module_name.split(".")[0]:
            continue
        yield f"{module_name}.{name}", thing
        if inspect.isclass(thing):
            for part, member in sorted(vars(thing).items()):
                if not part.startswith("_") and (
                    inspect.isroutine(member) or isinstance(member, property)
                ):
                    yield f"{module_name}.{name}.{part}", member


def first_sentence(docstring: object) -> str:
    """The first sentence of a docstring on one line; nothing where it is only a signature."""
    text = inspect.cleandoc(docstring) if isinstance(docstring, str) else ""
    for paragraph in re.split(r"\n\s*\n", text):
        line = " ".join(paragraph.split())
        # Some docstrings open with the call: f(x) -> y
        line = re.sub(r"^[\w.]+\([^)]*\)(?: ?->? ?[\w. ,|()\[\]]+?)?(?: --?|:|$)\s*", "", line)
        sentence = re.split(r"(?<=[.!?])\s", line)[0]
        if sentence and sentence.isascii() and "->" not in sentence and sentence[0] != ">":
            return sentence
    return ""


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # what is deprecated says so
    main()
