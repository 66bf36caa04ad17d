"""Builds with sanitizers: no out-of-bounds access, no races between searches and a writer.

`make test-asan` and `make test-tsan` run one half each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cpp_tests import MEMORY_SANITIZERS, run, sanitized
from tools_needed import need_tool, skip_or_fail

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.xdist_group("cpp")
ALL_TESTS = os.environ.get("BITWEIGH_REQUIRE_TOOLS") == "1"
# Tests that stress memory safety: damaged files, and random sequences of changes.
TESTS = [
    "tests/test_hostile_files.py",
    "tests/test_hostile_lean_files.py",
    "tests/test_index.py",
    "tests/test_lean_rows.py",
    "tests/test_life.py",
]
SECONDS = 10 if ALL_TESTS else 3

# For `python -c`, with the build folder and the code to run. It checks that the module has
# sanitizers, without which it would pass every test.
CHECKED = """
import sys
from pathlib import Path
from bitweigh import _core
site, task = sys.argv[1:3]
module = Path(_core.__file__).resolve()
assert module.is_relative_to(site), f"{module} is not what was built into {site}"
for name in (b"__asan_report_load", b"__ubsan_handle"):
    assert name in module.read_bytes(), f"{module} was built without sanitizers"
assert "libasan" in Path("/proc/self/maps").read_text(), "the runtime is not loaded"
exec(task)
"""
RUN_TESTS = """
import pytest
options = ["-q", "-s", "-p", "no:faulthandler", "-p", "no:cacheprovider"]
sys.exit(pytest.main([*options, *sys.argv[3:]]))
"""
STEP_OUT = """
import bitweigh, numpy as np
too_long = np.lib.stride_tricks.as_strided(np.zeros((1000, 8), np.uint8), (1001, 8))
bitweigh.Index(64).add(too_long)
print("went on")
"""


def need_linux() -> None:
    if sys.platform != "linux":
        skip_or_fail("the sanitizers are used as they are on Linux")


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> str:
    if not ALL_TESTS:
        pytest.skip("takes minutes: `make test-asan` and `make test-all` run it")
    need_linux()
    sanitized(MEMORY_SANITIZERS, tmp_path_factory.mktemp("compiler"))
    return need_tool("g++")


@pytest.fixture(scope="module")
def site(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the current library, built with sanitizers."""
    folder = tmp_path_factory.mktemp("site").resolve()
    settings = [
        f"cmake.define.BITWEIGH_SANITIZE={MEMORY_SANITIZERS}",
        f"cmake.define.CMAKE_CXX_COMPILER={compiler}",
        "install.strip=false",
        "build-dir=build/sanitized/{wheel_tag}",
    ]
    chosen = [part for setting in settings for part in ("--config-settings", setting)]
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    run(*pip, "--target", folder, *chosen, ROOT)
    return folder


@pytest.fixture(scope="module")
def environment(compiler: str, site: Path) -> dict[str, str]:
    """Return the environment in which Python loads the module from that folder."""
    # The runtime must be loaded first, as Python was built without it. It looks up the functions
    # that throw exceptions only at that moment.
    names = ("libasan.so", "libstdc++.so")
    return os.environ | {
        "LD_PRELOAD": " ".join(run(compiler, f"-print-file-name={n}").strip() for n in names),
        "PYTHONPATH": str(site),
        # Python's allocator would hide the bounds of objects.
        "PYTHONMALLOC": "malloc",
        # Python leaks memory at exit. An allocation that fails must return null, not abort.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


@pytest.mark.tools
@pytest.mark.timeout(1200)
def test_a_step_out_of_bounds_ends_the_process(site: Path, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECKED, site, STEP_OUT],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "went on" not in done.stdout
    assert done.returncode != 0
    assert "AddressSanitizer: heap-buffer-overflow" in done.stderr, done.stderr
    assert "cpp/engine/" in done.stderr, done.stderr


@pytest.mark.tools
@pytest.mark.timeout(3600)
def test_damaged_files_and_long_lives_stay_within_bounds(
    site: Path, environment: dict[str, str]
) -> None:
    command = [sys.executable, "-c", CHECKED, site, RUN_TESTS, *TESTS]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, "a test failed, or a sanitizer found what is reported above"


@pytest.mark.tools
@pytest.mark.timeout(900)
def test_searches_and_a_writer_do_not_race(tmp_path: Path) -> None:
    need_linux()
    stress = sanitized("thread", tmp_path)
    stress.run("stress_test", settings=(f"BITWEIGH_STRESS_SECONDS={SECONDS}",))
