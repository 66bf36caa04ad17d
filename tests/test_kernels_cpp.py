"""The tests in C++: the engine's, by several compilers for both CPUs, and of the paper's claims."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bitweigh import _core

ROOT = Path(__file__).parent.parent
# A program of its own, with what it calls.
PAPER_TEST = ROOT / "cpp/tests/paper_test.cpp"
PAPER_SOURCES = [
    PAPER_TEST,
    *(ROOT / f"cpp/paper/{name}.cpp" for name in ("bucket_queue", "pq_table", "substring_table")),
    *sorted((ROOT / "cpp/engine/scan").glob("*.cpp")),
]
SOURCES = sorted(
    {*(ROOT / "cpp/engine").rglob("*.cpp"), *(ROOT / "cpp/tests").glob("*.cpp")} - {PAPER_TEST}
)
FLAGS = ["-std=c++20", "-O2", "-ffp-contract=off", "-Icpp", "-pthread"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
AARCH64 = "aarch64-linux-gnu"


def need_tool(name: str) -> str:
    """The path of a program; skips without it, or fails where all tests must run."""
    path = shutil.which(name)
    if path is None:
        message = f"{name} is missing: `make tools` installs it"
        if os.environ.get("BITWEIGH_REQUIRE_TOOLS") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return path


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("vectors") / "vectors.bin"
    run(sys.executable, ROOT / "cpp/tests/write_vectors.py", path)
    return path


def build_and_run(
    program: Path, vectors: Path, compiler: list[str], kernels: list[str], emulator: str = ""
) -> None:
    """Build the tests, in silence, and run them; each of the kernels must be among those tested."""
    said = run(*compiler, *FLAGS, *WARNINGS, *SOURCES, "-o", program)
    assert said == "", said
    expected = [part for kernel in kernels for part in ("--expect", kernel)]
    print(run(*([emulator] if emulator else []), program, vectors, *expected))


def test_the_cpp_tests_pass_with_every_kernel_of_this_machine(
    vectors: Path, tmp_path: Path
) -> None:
    build_and_run(tmp_path / "scan_test", vectors, [need_tool("g++")], _core.kernel_names())


@pytest.mark.tools
def test_the_cpp_tests_pass_when_built_by_clang(vectors: Path, tmp_path: Path) -> None:
    build_and_run(tmp_path / "scan_test", vectors, [need_tool("clang++")], _core.kernel_names())


@pytest.mark.tools
def test_the_neon_kernel_passes_the_cpp_tests_under_emulation(
    vectors: Path, tmp_path: Path
) -> None:
    compiler = [need_tool(f"{AARCH64}-g++"), "-static"]
    emulator = need_tool("qemu-aarch64")
    build_and_run(tmp_path / "scan_test", vectors, compiler, ["neon"], emulator)


@pytest.mark.tools
def test_the_neon_kernel_passes_the_cpp_tests_when_built_by_clang(
    vectors: Path, tmp_path: Path
) -> None:
    need_tool(f"{AARCH64}-g++")  # whose headers and libraries clang uses
    compiler = [need_tool("clang++"), f"--target={AARCH64}", "-static"]
    emulator = need_tool("qemu-aarch64")
    build_and_run(tmp_path / "scan_test", vectors, compiler, ["neon"], emulator)


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=pytest.mark.tools)])
def test_the_paper_s_claims_hold_probe_by_probe(compiler: str, tmp_path: Path) -> None:
    program = tmp_path / "paper_test"
    said = run(need_tool(compiler), *FLAGS, *WARNINGS, *PAPER_SOURCES, "-o", program)
    assert said == "", said
    print(run(program))
