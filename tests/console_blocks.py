"""Blocks of the pages that show a shell: lines after `$ ` run, other lines are what they print.

`bitweigh serve` starts a server on a free port; the address that the pages have stands for it from
then on. In what a command prints, `...` stands for anything, and white space does not count.
"""

from __future__ import annotations

import contextlib
import doctest
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from running_server import started_server, stop

__all__ = ["ADDRESS", "Shell"]

ADDRESS = "http://127.0.0.1:8420"


class Shell:
    """Runs the blocks of a page, one after the other, in a folder."""

    def __init__(self, folder: Path) -> None:
        """Have no server yet."""
        self.folder = folder
        self.address = ADDRESS
        self.server: subprocess.Popen[str] | None = None
        self.environment = dict(os.environ)
        bin_folder = folder / ".bin"
        bin_folder.mkdir()
        command = bin_folder / "bitweigh"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bitweigh "$@"\n')
        command.chmod(0o755)
        self.environment["PATH"] = f"{bin_folder}:{self.environment['PATH']}"

    def __enter__(self) -> Self:
        """Stop the server at the end of the block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop the server."""
        self.stop()

    def stop(self) -> None:
        """Stop the server, if there is one."""
        if self.server is not None:
            stop(self.server)
            self.server = None

    def run(self, block: str) -> None:
        """Run the commands of a block and compare what they print."""
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, words, shown = _split(part)
            if words[:2] == ["bitweigh", "serve"] and words[2] != "keys":
                self.serve(words[2:])
            elif words[0] == "kill":
                assert self.server is not None
                self.server.send_signal(signal.SIGTERM)
                self.stop()
            else:
                self.check(command, shown)

    def serve(self, arguments: list[str]) -> None:
        """Start a server, after the one before it has stopped."""
        self.stop()
        self.server, self.address = started_server(
            *arguments, cwd=self.folder, env=self.environment
        )

    def check(self, command: str, shown: str) -> None:
        """Run a command that must end well and print what is shown."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command.replace(ADDRESS, self.address)],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        printed = done.stdout.replace(self.address, ADDRESS)
        want, got = ("".join(text.split()) + "\n" for text in (shown, printed))
        matches = doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS)
        assert not shown.strip() or matches, f"{command}\nprints\n{printed}\nand not\n{shown}"


def _split(part: str) -> tuple[str, list[str], str]:
    """A command, its words, and what is shown below it; a quoted text may have several lines."""
    lines = part.splitlines()
    for end in range(1, len(lines) + 1):
        command = "\n".join(lines[:end])
        if command.endswith("\\"):
            continue
        with contextlib.suppress(ValueError):  # an open quote
            return command, shlex.split(command), "\n".join(lines[end:])
    raise AssertionError(f"not a command: {part}")
