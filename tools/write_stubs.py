"""Write the type stubs of the compiled modules: `python tools/write_stubs.py [FOLDER]`.

The stubs are checked in, so that type checkers see them without a build; a test fails if they are
out of date.
"""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

MODULES = ("_core", "_paper")
DEFAULT = Path(__file__).parent.parent / "src" / "bitweigh"


def stub_text(name: str) -> str:
    """Return the stub of a compiled module of the installed bitweigh."""
    module = importlib.import_module(f"bitweigh.{name}")
    generator = StubGen(module)
    generator.put(module)
    text = generator.get()
    # The version changes with each build; the generator does not see the element type of tuples.
    text = re.sub(r"^version: str = .*$", "version: str", text, flags=re.MULTILINE)
    return text.replace("counter_names: tuple = ...", "counter_names: tuple[str, ...] = ...")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    for name in MODULES:
        (folder / f"{name}.pyi").write_text(stub_text(name))
