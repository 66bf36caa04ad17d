"""The types that callers' type checkers see."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

from bitweigh import hashers, weighers
from bitweigh.typing import HasherName, WeigherName

ROOT = Path(__file__).parent.parent


def test_calls_as_callers_write_them_have_the_types_that_they_return() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "tests/typed_calls.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_hashers_and_weighers_are_chosen_by_the_names_in_the_types() -> None:
    assert list(hashers.BY_NAME) == list(get_args(HasherName))
    assert list(weighers.BY_NAME) == list(get_args(WeigherName))
