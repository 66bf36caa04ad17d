"""Write the type stubs of the compiled modules: `python tools/write_stubs.py [FOLDER]`.

The stubs are checked in, so that type checkers see them without a build; a test fails when one is
stale.
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
    """The stub of a compiled module of the installed bitweigh."""
    module = importlib.import_module(f"bitweigh.{name}")
    generator = StubGen(module)
    generator.put(module)
    text = generator.get()
    # The version is whatever was built; the generator does not look into tuples.
    text = re.sub(r"^version: str = .*$", "version: str", text, flags=re.MULTILINE)
    return text.replace("counter_names: tuple = ...", "counter_names: tuple[str, ...] = ...")


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    for name in MODULES:
        (folder / f"{name}.pyi").write_text(stub_text(name))
