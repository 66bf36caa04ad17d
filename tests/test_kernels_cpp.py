"""The tests in C++, by several compilers for both CPUs: scans, probing, and the paper's claims."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from tools_needed import need_tool, skip_or_fail

from bitweigh import _core

ROOT = Path(__file__).parent.parent
# A program of its own, with what it calls.
PAPER_TEST = ROOT / "cpp/tests/paper_test.cpp"
PAPER_SOURCES = [
    PAPER_TEST,
    *(ROOT / f"cpp/paper/{name}.cpp" for name in ("bucket_queue", "pq_table", "substring_table")),
    *sorted((ROOT / "cpp/engine/scan").glob("*.cpp")),
]
ENGINE = sorted((ROOT / "cpp/engine").rglob("*.cpp"))
# Another one: what only probing uses.
PROBE_TESTS = [
    ROOT / f"cpp/tests/{name}_test.cpp"
    for name in ("allocate", "band_query", "band_table", "probe", "range")
]
PROBE_SOURCES = [*ENGINE, *PROBE_TESTS]
# One whose allocations fail.
REENTRY_TEST = ROOT / "cpp/tests/reentry_test.cpp"
# And one that test_sanitizers.py builds.
STRESS_TEST = ROOT / "cpp/tests/stress_test.cpp"
OWN_PROGRAMS = {PAPER_TEST, *PROBE_TESTS, REENTRY_TEST, STRESS_TEST}
SOURCES = sorted({*ENGINE, *(ROOT / "cpp/tests").glob("*.cpp")} - OWN_PROGRAMS)
FLAGS = ["-std=c++20", "-O2", "-ffp-contract=off", "-Icpp", "-pthread"]
WARNINGS = ["-Wall", "-Wextra", "-Werror"]
SANITIZERS = [
    "-O1",
    "-fsanitize=address,undefined,float-cast-overflow",
    "-fno-sanitize-recover=all",
]
AARCH64 = "aarch64-linux-gnu"


def need_sanitizers(compiler: str, folder: Path) -> None:
    """Skips or fails where a program built with them does not link or start."""
    source = folder / "empty.cpp"
    source.write_text("int main() {}")
    command = [compiler, *SANITIZERS, str(source), "-o", str(folder / "empty")]
    for step in (command, [str(folder / "empty")]):
        if subprocess.run(step, capture_output=True, check=False).returncode != 0:
            skip_or_fail(f"{compiler} has no sanitizers here")


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


def build_and_run_probe_test(
    program: Path, compiler: list[str], flags: Sequence[str] = (), emulator: str = ""
) -> None:
    said = run(*compiler, *FLAGS, *flags, *WARNINGS, *PROBE_SOURCES, "-o", program)
    assert said == "", said
    print(run(*([emulator] if emulator else []), program))


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


def test_probing_is_exact_and_reads_nothing_out_of_bounds(tmp_path: Path) -> None:
    compiler = need_tool("g++")
    need_sanitizers(compiler, tmp_path)
    build_and_run_probe_test(tmp_path / "probe_test", [compiler], SANITIZERS)


def test_searches_are_right_inside_others_and_after_any_failed_allocation(tmp_path: Path) -> None:
    compiler = need_tool("g++")
    need_sanitizers(compiler, tmp_path)  # what was left behind may only be seen as a step too far
    program = tmp_path / "reentry_test"
    flags = [*FLAGS, *SANITIZERS, *WARNINGS]
    said = run(compiler, *flags, *ENGINE, REENTRY_TEST, "-o", program)
    assert said == "", said
    print(run(program))


@pytest.mark.tools
def test_probing_is_exact_when_built_by_clang(tmp_path: Path) -> None:
    build_and_run_probe_test(tmp_path / "probe_test", [need_tool("clang++")])


@pytest.mark.tools
def test_probing_is_exact_with_the_neon_kernel(tmp_path: Path) -> None:
    compiler = [need_tool(f"{AARCH64}-g++"), "-static"]
    emulator = need_tool("qemu-aarch64")
    build_and_run_probe_test(tmp_path / "probe_test", compiler, emulator=emulator)


@pytest.mark.parametrize("compiler", ["g++", pytest.param("clang++", marks=pytest.mark.tools)])
def test_the_paper_s_claims_hold_probe_by_probe(compiler: str, tmp_path: Path) -> None:
    program = tmp_path / "paper_test"
    said = run(need_tool(compiler), *FLAGS, *WARNINGS, *PAPER_SOURCES, "-o", program)
    assert said == "", said
    print(run(program))
