"""Write the type stub of the compiled module: `python tools/write_stubs.py [FILE]`.

The stub is checked in, so that type checkers see it without a build; a test fails when it is stale.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from nanobind.stubgen import StubGen

DEFAULT = Path(__file__).parent.parent / "src" / "bitweigh" / "_core.pyi"


def stub_text() -> str:
    """The stub of the installed bitweigh._core."""
    from bitweigh import _core

    generator = StubGen(_core)
    generator.put(_core)
    text = generator.get()
    # The version is whatever was built; the generator does not look into tuples.
    text = re.sub(r"^version: str = .*$", "version: str", text, flags=re.MULTILINE)
    return text.replace("counter_names: tuple = ...", "counter_names: tuple[str, ...] = ...")


if __name__ == "__main__":
    Path(sys.argv[1] if len(sys.argv) > 1 else DEFAULT).write_text(stub_text())
