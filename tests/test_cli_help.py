"""The help texts, how commands are started, and which modules they load early."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from cli_cases import commands, done, plain

NAMES = ["bitweigh", *sorted(commands())]


@pytest.mark.parametrize("name", NAMES)
def test_flags_have_no_type_behind_them(name: str) -> None:
    text = plain(done(*name.split()[1:], "--help"))
    assert "--help" in text
    assert "<bool>" not in text


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_option_is_explained_by_a_sentence(name: str) -> None:
    for parameter in commands()[name].params:
        assert re.match(r"[A-Z.\-n].*\.$", parameter.help or "", re.DOTALL), parameter.name


def loaded_by(script: str) -> set[str]:
    """Return the modules that a script loads."""
    listing = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
    result = subprocess.run(
        [sys.executable, "-c", listing + script], capture_output=True, text=True, check=True
    )
    return set(result.stderr.split())


def test_the_version_is_told_without_loading_what_only_commands_need() -> None:
    called = loaded_by(
        "sys.argv = ['bitweigh', '--version']; from bitweigh._cli import main; main()"
    )
    more = called - loaded_by("import bitweigh")
    ours = {name for name in more if name.startswith("bitweigh.")}
    allowed = ("bitweigh._cli", "bitweigh._progress", "bitweigh._wording")
    assert {name for name in ours if not name.startswith(allowed)} == set()
    heavy = {"rich", "pyarrow", "pandas", "polars", "sklearn", "h5py", "bitweigh_experiments"}
    assert heavy & called == set()
