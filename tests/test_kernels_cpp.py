"""The C++ tests by several compilers, for x86-64 and aarch64."""

from __future__ import annotations

from pathlib import Path

import pytest
from cpp_tests import MEMORY_SANITIZERS, CppTests, sanitized
from effort import LONG
from tools_needed import need_tool

from bitweigh import _core

# Mostly for compiling: up to a minute for each set of flags on two idle cores.
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("cpp")]
AARCH64 = "aarch64-linux-gnu"
GCC = CppTests("g++", "g++")
CLANG = CppTests("clang++", "clang++")


def expect(kernels: list[str]) -> tuple[str, ...]:
    """Assert that scan_test tests all these kernels."""
    return (f"BITWEIGH_EXPECT_KERNELS={';'.join(kernels)}",)


def emulated(compiler: str, *settings: str) -> CppTests:
    """Return the tests for aarch64, run by QEMU."""
    need_tool(f"{AARCH64}-g++")  # whose headers and libraries clang uses
    target = (
        "CMAKE_SYSTEM_NAME=Linux",
        "CMAKE_SYSTEM_PROCESSOR=aarch64",
        f"CMAKE_CROSSCOMPILING_EMULATOR={need_tool('qemu-aarch64')}",
        "CMAKE_EXE_LINKER_FLAGS=-static",
    )
    return CppTests(f"emulated-{compiler}", compiler, (*target, *settings))


def test_the_cpp_tests_pass_and_read_nothing_out_of_bounds(tmp_path: Path) -> None:
    programs = ["scan_test", "plan_test", "probe_test", "reentry_test"]
    if LONG:
        programs.append("paper_test")
    settings = expect(_core.kernel_names())
    sanitized(MEMORY_SANITIZERS, tmp_path).run(*programs, settings=settings)


@pytest.mark.long
def test_the_cpp_tests_pass_when_optimised() -> None:
    programs = "scan_test", "plan_test", "probe_test", "paper_test", "reentry_test"
    GCC.run(*programs, settings=expect(_core.kernel_names()))


@pytest.mark.tools
def test_the_cpp_tests_pass_when_built_by_clang() -> None:
    CLANG.run("scan_test", settings=expect(_core.kernel_names()))


@pytest.mark.tools
def test_the_neon_kernel_passes_the_cpp_tests_under_emulation() -> None:
    emulated(f"{AARCH64}-g++").run("scan_test", settings=expect(["neon"]))


@pytest.mark.tools
def test_the_neon_kernel_passes_the_cpp_tests_when_built_by_clang() -> None:
    clang = emulated("clang++", f"CMAKE_CXX_COMPILER_TARGET={AARCH64}")
    clang.run("scan_test", settings=expect(["neon"]))


@pytest.mark.tools
def test_probing_is_exact_when_built_by_clang() -> None:
    CLANG.run("plan_test", "probe_test")


@pytest.mark.tools
def test_probing_is_exact_with_the_neon_kernel() -> None:
    emulated(f"{AARCH64}-g++").run("plan_test", "probe_test")


@pytest.mark.tools
def test_the_paper_s_claims_hold_when_built_by_clang() -> None:
    CLANG.run("paper_test")
