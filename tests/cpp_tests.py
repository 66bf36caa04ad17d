"""The C++ tests: built by CMake, once for each set of flags, and run by ctest."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from effort import LONG
from tools_needed import need_tool, skip_or_fail

ROOT = Path(__file__).parent.parent
# Out-of-bounds accesses and undefined behaviour.
UNDEFINED_BEHAVIOUR = "undefined,float-cast-overflow"
MEMORY_SANITIZERS = f"address,{UNDEFINED_BEHAVIOUR}"


@dataclass(frozen=True)
class CppTests:
    """A CMake build folder with all programs compiled with the same flags."""

    name: str
    """Of the folder in build/cpp-tests. What is there and up to date is not built again."""
    compiler: str
    settings: tuple[str, ...] = ()
    """CMake variables, as ``NAME=VALUE``."""

    @property
    def _folder(self) -> Path:
        return ROOT / "build" / "cpp-tests" / self.name

    def run(self, *programs: str, settings: tuple[str, ...] = ()) -> None:
        """Build the programs, with warnings as errors, and run them."""
        variables = [
            "BITWEIGH_TESTS=ON",
            "CMAKE_CXX_FLAGS=-Werror",
            f"CMAKE_CXX_COMPILER={need_tool(self.compiler)}",
            f"Python_EXECUTABLE={sys.executable}",
            *self.settings,
            *settings,
        ]
        cmake, jobs = need_tool("cmake"), str(os.cpu_count() or 1)
        defined = [f"-D{variable}" for variable in variables]
        run(cmake, "-S", ROOT, "-B", self._folder, *defined)
        run(cmake, "--build", self._folder, "--parallel", jobs, "--target", *programs)
        chosen = f"^({'|'.join(programs)})$"
        options = ["--verbose", "--no-tests=error"]
        print(run(need_tool("ctest"), *options, "-R", chosen, cwd=self._folder))


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Return a command's output; fail with that output if the command fails."""
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def sanitized(sanitizers: str, folder: Path) -> CppTests:
    """Return the tests built by g++ with sanitizers; skip or fail if these do not work."""
    compiler = need_tool("g++")
    source = folder / "empty.cpp"
    source.write_text("int main() {}")
    command = [compiler, f"-fsanitize={sanitizers}", str(source), "-o", str(folder / "empty")]
    for step in (command, [str(folder / "empty")]):
        if subprocess.run(step, capture_output=True, check=False).returncode != 0:
            skip_or_fail(f"{compiler} has no -fsanitize={sanitizers} here")
    name = f"g++-{sanitizers.replace(',', '-')}"
    settings = (f"BITWEIGH_SANITIZE={sanitizers}",)
    if sanitizers == MEMORY_SANITIZERS and not LONG:
        # What compiles fastest: half the time of the other build.
        name += "-engine"
        settings += (
            "CMAKE_CXX_FLAGS_RELEASE=-Og",
            f"BITWEIGH_UNSANITIZED_TESTS={UNDEFINED_BEHAVIOUR}",
            "BITWEIGH_PRECOMPILE=ON",
        )
    else:
        settings += ("CMAKE_CXX_FLAGS_RELEASE=-O1",)
    return CppTests(name, "g++", settings)
