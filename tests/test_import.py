"""`import bitweigh` loads the index and what it needs, nothing else."""

from __future__ import annotations

import subprocess
import sys

import pytest

NOT_LOADED = (
    "bitweigh._cli",
    "bitweigh._paper",
    "bitweigh.client",
    "bitweigh.evaluation",
    "bitweigh.frames",
    "bitweigh.io",
    "bitweigh.paper",
    "bitweigh.server",
    "bitweigh.sklearn",
    "bitweigh_experiments",
    "h5py",
    "httpx",
    "msgspec",
    "orjson",
    "pandas",
    "polars",
    "pyarrow",
    "rich",
    "scipy",
    "sklearn",
    "starlette",
    "typer",
    "uvicorn",
)


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    code = "import sys, bitweigh; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize("name", NOT_LOADED)
def test_importing_the_library_does_not_load(name: str, loaded: set[str]) -> None:
    assert name not in loaded
    assert not [one for one in loaded if one.startswith(f"{name}.")]


def test_the_paper_is_loaded_when_it_is_asked_for() -> None:
    code = "import sys, bitweigh.paper; print('bitweigh._paper' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
