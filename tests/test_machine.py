"""Kernels and threads: those available, and those forced by environment variables."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cases import KERNELS

import bitweigh
from bitweigh import _system as machine


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_environment_forces_a_kernel(kernel: str) -> None:
    code = "import bitweigh; print(bitweigh.info().kernel, bitweigh.Index(8)._engine.kernel)"
    assert python(code, BITWEIGH_KERNEL=kernel).stdout.split() == [kernel, kernel]


def test_the_fastest_kernel_is_the_default() -> None:
    code = "import bitweigh; print(bitweigh.info().kernel)"
    assert python(code, BITWEIGH_KERNEL="").stdout.split() == [KERNELS[0]]


def test_a_kernel_that_is_not_there_fails_at_import_and_names_those_that_are() -> None:
    done = python("import bitweigh", BITWEIGH_KERNEL="abacus")
    assert done.returncode == 1
    assert f"BITWEIGH_KERNEL must be one of {', '.join(KERNELS)} on this machine" in done.stderr


def test_the_scalar_kernel_is_always_there() -> None:
    assert bitweigh.info().kernels[-1] == "scalar"
    assert bitweigh.info().version == bitweigh.__version__


def test_the_environment_sets_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITWEIGH_THREADS", "3")
    assert bitweigh.info().threads == 3


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "1025"])
def test_nonsense_for_threads_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BITWEIGH_THREADS", value)
    with pytest.raises(ValueError, match=f"BITWEIGH_THREADS .* got '{value}'"):
        bitweigh.info()


def test_threads_default_to_the_cpus_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BITWEIGH_THREADS", raising=False)
    assert bitweigh.info().threads == machine._usable_cpus()
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "import bitweigh; print(bitweigh.info().threads)"
    )
    if hasattr(os, "sched_setaffinity"):
        assert python(code).stdout.split() == ["1"]


def test_the_avx512_kernel_is_there_where_the_cpu_has_it() -> None:
    flags = Path("/proc/cpuinfo")
    if not flags.exists() or "avx512bw" not in flags.read_text():
        pytest.skip("this CPU has no AVX-512: no test runs that kernel here")
    assert "avx512" in KERNELS
    # Only where it was measured to be faster is it the default.
    intel = "GenuineIntel" in flags.read_text()
    assert KERNELS.index("avx512") == (0 if intel and "avx512_vbmi" in flags.read_text() else 1)
