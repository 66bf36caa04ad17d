"""What the help says, how commands are started, and what they load before they know what to do."""

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


def loaded_by(*arguments: str) -> set[str]:
    """Modules that a call of the command line loads."""
    script = (
        "import atexit, sys; from bitweigh._cli import main; "
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "
        f"sys.argv = ['bitweigh', *{arguments!r}]; main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(result.stderr.split())


def test_the_version_is_told_without_loading_what_only_commands_need() -> None:
    heavy = {"rich", "pyarrow", "pandas", "sklearn", "bitweigh.evaluation"}
    assert heavy & loaded_by("--version") == set()
