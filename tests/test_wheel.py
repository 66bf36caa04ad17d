"""The wheels: what is in them, what they need, and that the library works alone with NumPy."""

from __future__ import annotations

import subprocess
import sys
import venv
from importlib.metadata import distribution, requires
from pathlib import Path

import pytest

import bitweigh

ROOT = Path(__file__).parent.parent
USE = """
import numpy as np, bitweigh, pathlib
index = bitweigh.Index(64)
index.add(np.random.default_rng(0).integers(0, 256, (5000, 8), dtype=np.uint8))
costs = np.random.default_rng(1).standard_normal((64, 2))
found = index.search(costs, 10)
codes = index.codes_of(np.arange(5000))
assert (found.ids == bitweigh.reference.search(codes, costs, 10).ids).all()
folder = pathlib.Path(bitweigh.__file__).parent
for name in ("py.typed", "_core.pyi", "_paper.pyi"):
    assert (folder / name).exists(), name
from bitweigh import paper
assert (paper.MIWQ(codes, 64).search(costs, 10).ids == found.ids).all()
print("searched")
"""
HINT = "bitweigh: the command line needs rich: pip install 'bitweigh[cli]'\n"
# Files that the wheel of the experiments must have besides its modules.
READ_BY_EXPERIMENTS = (
    "demo/texts/LICENSE-PSF.txt",
    "demo/texts/python.txt",
    "py.typed",
    "reproduce/published.txt",
    "reproduce/report/page.html",
    "reproduce/report/style.css",
)


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_of(package: str) -> list[str]:
    """Return the files in the wheel of an installed package."""
    names = [str(file) for file in distribution(package).files or []]
    made_here = ("__pycache__", "../", "direct_url.json", "INSTALLER", "REQUESTED")
    return [name for name in names if not any(part in name for part in made_here)]


def test_the_wheel_has_two_compiled_modules_for_its_tag() -> None:
    compiled = sorted(name for name in files_of("bitweigh") if name.endswith(".so"))
    assert [name.split(".")[0] for name in compiled] == ["bitweigh/_core", "bitweigh/_paper"]
    stable = sys.version_info >= (3, 12)
    assert {"abi3" in name for name in compiled} == {stable}


def test_the_wheel_has_the_library_and_nothing_else() -> None:
    names = files_of("bitweigh")
    assert {name.split("/")[0] for name in names} == {
        "bitweigh",
        f"bitweigh-{bitweigh.__version__}.dist-info",
    }
    kept_out = ("experiments", "demo", "reproduce", "datasets", "PSF")
    assert not [name for name in names if any(word in name for word in kept_out)]


def test_the_wheel_is_under_one_licence() -> None:
    metadata = distribution("bitweigh").metadata
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]


def test_the_command_line_needs_two_packages() -> None:
    needed = [line.replace("'", '"') for line in requires("bitweigh") or []]
    of_cli = sorted(line.split(">")[0] for line in needed if 'extra == "cli"' in line)
    assert of_cli == ["rich", "typer"]


def test_the_wheel_of_the_experiments_has_its_texts_and_their_licence() -> None:
    names = set(files_of("bitweigh-experiments"))
    assert names >= {f"bitweigh_experiments/{name}" for name in READ_BY_EXPERIMENTS}
    metadata = distribution("bitweigh-experiments").metadata
    assert metadata["License-Expression"] == "Apache-2.0 AND PSF-2.0"
    assert {Path(name).name for name in metadata.get_all("License-File") or []} == {
        "LICENSE",
        "LICENSE-PSF.txt",
    }


@pytest.mark.long
@pytest.mark.timeout(900)
def test_the_wheel_works_alone_with_numpy_and_xxhash(tmp_path: Path) -> None:
    folder = tmp_path / "wheel"
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    assert ("cp311-cp311" if sys.version_info < (3, 12) else "cp312-abi3") in wheel.name
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    installed = run(python, "-m", "pip", "list", "--format=freeze").lower()
    packages = {line.split("==")[0] for line in installed.split()}
    assert packages - {"pip", "setuptools"} == {"bitweigh", "numpy", "xxhash"}
    assert run(python, "-c", USE).strip() == "searched"
    command = subprocess.run(
        [tmp_path / "venv" / "bin" / "bitweigh", "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert command.returncode == 1
    assert command.stderr == HINT
