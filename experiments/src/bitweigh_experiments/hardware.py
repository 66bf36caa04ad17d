"""Facts about the machine and software that measurements depend on; no host names, no paths."""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

from bitweigh import info

__all__ = ["facts", "output_of", "version_of"]


def facts() -> dict[str, str]:
    """Return all known facts by name, in the order in which to print them.

    Examples
    --------
    >>> from bitweigh_experiments import hardware
    >>> "Python" in hardware.facts()
    True

    """
    values = {
        "CPU": _cpu_model(),
        "CPUs": str(os.cpu_count()),
        "caches": _caches(),
        "memory": f"{_memory() / 2**30:.0f} GiB",
        "OS": f"{platform.system()}, {platform.machine()}",
        "Python": platform.python_version(),
        "NumPy": version_of("numpy"),
        "bitweigh": info().version,
        "kernel": info().kernel,
        "date": datetime.date.today().isoformat(),
    }
    return {name: value for name, value in values.items() if value}


def _memory() -> int:
    """Return the machine's physical memory in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return output_of("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor()


def _caches() -> str:
    """Return e.g. "L1d 32K, L1i 32K, L2 1024K, L3 32768K" for the first CPU; empty if unknown."""
    found = []
    for folder in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level, kind, size = (
                (folder / name).read_text().strip() for name in ("level", "type", "size")
            )
        except OSError:
            continue
        suffix = {"Data": "d", "Instruction": "i"}.get(kind, "")
        found.append(f"L{level}{suffix} {size}")
    return ", ".join(found)


def version_of(package: str) -> str:
    """Return the version of an installed package; empty if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def output_of(*command: str, folder: Path | None = None) -> str:
    """Return a command's standard output, stripped; empty if it fails or is missing."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
