"""The wheels: what is in them, what they need, and that the library works alone with NumPy."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from email import message_from_string
from email.message import Message
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
HINT = "bitweigh: the command line needs typer: pip install 'bitweigh[cli]'\n"
# What a wheel of the experiments must have beside its modules.
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


def build(source: Path, folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def names_in(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def metadata_of(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("dist-info/METADATA")]
        return message_from_string(archive.read(name).decode())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library's."""
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_has_two_compiled_modules_for_its_tag(wheel: Path) -> None:
    tag = "cp311-cp311" if sys.version_info < (3, 12) else "cp312-abi3"
    assert tag in wheel.name
    compiled = sorted(name for name in names_in(wheel) if name.endswith(".so"))
    assert [name.split(".")[0] for name in compiled] == ["bitweigh/_core", "bitweigh/_paper"]
    assert {"abi3" in name for name in compiled} == {"abi3" in tag}


def test_the_wheel_has_the_library_and_nothing_else(wheel: Path) -> None:
    assert {name.split("/")[0] for name in names_in(wheel)} == {
        "bitweigh",
        f"bitweigh-{bitweigh.__version__}.dist-info",
    }
    kept_out = ("experiments", "demo", "reproduce", "datasets", "PSF")
    assert not [name for name in names_in(wheel) if any(word in name for word in kept_out)]


def test_the_wheel_is_under_one_licence(wheel: Path) -> None:
    metadata = metadata_of(wheel)
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata.get_all("License-File") == ["LICENSE"]


def test_the_command_line_needs_two_packages(wheel: Path) -> None:
    needed = metadata_of(wheel).get_all("Requires-Dist") or []
    of_cli = sorted(
        one.split(">")[0] for one in needed if 'extra == "cli"' in one.replace("'", '"')
    )
    assert of_cli == ["rich", "typer"]


def test_the_wheel_of_the_experiments_has_its_texts_and_their_licence(tmp_path: Path) -> None:
    wheel = build(ROOT / "experiments", tmp_path)
    assert set(names_in(wheel)) >= {f"bitweigh_experiments/{name}" for name in READ_BY_EXPERIMENTS}
    assert metadata_of(wheel)["License-Expression"] == "Apache-2.0 AND PSF-2.0"
    assert {Path(name).name for name in metadata_of(wheel).get_all("License-File") or []} == {
        "LICENSE",
        "LICENSE-PSF.txt",
    }


def test_the_wheel_works_alone_with_numpy_and_xxhash(wheel: Path, tmp_path: Path) -> None:
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
