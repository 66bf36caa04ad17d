"""Generator of the shipped documents: run this module and redirect its output to texts/python.txt.

It prints a line for each public module, class, function and method of the running Python's standard
library: its name and the first sentence of its docstring. Equal sentences are printed once.
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

# Tests, demos, modules removed from later Pythons, and modules with side effects on import.
SKIPPED = {
    *("antigravity", "distutils", "idlelib", "lib2to3", "ntpath", "pydoc_data", "test", "this"),
    "turtledemo",
}
# Better-known names.
KNOWN_AS = {"genericpath": "os.path", "posix": "os", "posixpath": "os.path"}
# Length in characters of a sentence that is neither trivial nor a whole paragraph.
SHORTEST, LONGEST = 15, 160

HEADER = """\
# Names and first sentences of docstrings of the Python {version} standard library.
# Copyright (c) 2001-2023 Python Software Foundation; All Rights Reserved.
# Licence: PSF-2.0, see LICENSE-PSF.txt beside this file.
# Changes: only first sentences, on one line each, of public names; equal ones once.
"""


def summaries() -> Iterator[tuple[str, str]]:
    """Yield names and first sentences, each sentence once."""
    seen = set()
    for module_name in _module_names():
        for name, documented in _public(module_name):
            summary = first_sentence(getattr(documented, "__doc__", None))
            if "XXX" in summary:  # a placeholder
                continue
            if SHORTEST <= len(summary) <= LONGEST and summary not in seen:
                seen.add(summary)
                first, dot, rest = name.partition(".")
                yield KNOWN_AS.get(first, first) + dot + rest, summary


def main() -> None:
    """Print the contents of texts/python.txt."""
    lines = [f"{name}\t{summary}" for name, summary in summaries()]
    version = ".".join(map(str, sys.version_info[:2]))
    print(HEADER.format(version=version) + "\n".join(lines))


def _module_names() -> list[str]:
    """Return the public modules, including those in packages."""
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
    """Yield a module and its public classes, functions and methods, each with its name."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            module = importlib.import_module(module_name)
    except (ImportError, SystemExit):
        return
    yield module_name, module
    for name, member in sorted(vars(module).items()):
        if name.startswith("_") or not (inspect.isclass(member) or inspect.isroutine(member)):
            continue
        home = getattr(member, "__module__", None) or module_name
        if home.split(".")[0].lstrip("_") != module_name.split(".")[0]:
            continue
        yield f"{module_name}.{name}", member
        if inspect.isclass(member):
            for attribute, method in sorted(vars(member).items()):
                if not attribute.startswith("_") and (
                    inspect.isroutine(method) or isinstance(method, property)
                ):
                    yield f"{module_name}.{name}.{attribute}", method


def first_sentence(docstring: object) -> str:
    """Return the first sentence of a docstring on one line; empty if it is only a signature."""
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
    warnings.simplefilter("ignore")  # deprecated modules warn on import
    main()
