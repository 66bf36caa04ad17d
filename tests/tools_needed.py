"""Programs that only some tests need: these skip without them, or fail if all tests must run."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def skip_or_fail(message: str) -> NoReturn:
    """Skip the test, or fail it if all tests must run."""
    if os.environ.get("BITWEIGH_REQUIRE_TOOLS") == "1":
        pytest.fail(message)
    pytest.skip(message)


def need_tool(name: str) -> str:
    """Return the path of a program; skip or fail without it."""
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]
    path = shutil.which(name, path=os.pathsep.join(folders))
    if path is None:
        skip_or_fail(f"{name} is missing: `make tools` installs it")
    return path
