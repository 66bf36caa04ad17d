"""The wheel: builds, and works alone with NumPy."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

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
assert (folder / "py.typed").exists() and (folder / "_core.pyi").exists()
print("searched")
"""
HINT = "bitweigh: the command line needs typer: pip install 'bitweigh[cli]'\n"
READ_BY_THE_REPORT = ("published.txt", "report/style.css", "report/page.html")


def run(*command: str | Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_works_alone_with_numpy_and_xxhash(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("bitweigh-*.whl")
    tag = "cp311-cp311" if sys.version_info < (3, 12) else "cp312-abi3"
    assert tag in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    (core,) = [name for name in names if "_core." in name and name.endswith(".so")]
    assert ("abi3" in core) == ("abi3" in tag)
    assert set(names) >= {f"bitweigh/reproduce/{name}" for name in READ_BY_THE_REPORT}
    assert "bitweigh/demo/texts/python.txt" in names
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


def test_importing_the_library_does_not_import_the_packages_of_the_command_line() -> None:
    code = "import sys, bitweigh; print({'typer', 'rich'} & set(sys.modules))"
    assert run(sys.executable, "-c", code).strip() == "set()"
