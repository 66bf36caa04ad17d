"""Failing allocations and signals at any time, in every operation: nothing breaks.

BITWEIGH_INJECTIONS=full injects 10,000 and 20,000 of them, which takes some minutes. They run in a
separate process, injection_server.py, which is restarted after a crash or a hang.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from effort import LONG
from tools_needed import need_tool

FOLDER = Path(__file__).parent
SEED = int(os.environ.get("BITWEIGH_INJECTIONS_SEED", "1"))


def count(few: int, more: int, full: int) -> int:
    """Return the number of failures to inject."""
    if os.environ.get("BITWEIGH_INJECTIONS") == "full":
        return full
    return more if LONG else few


def run_from(first: int, kind: str, number: int, scratch: Path, preloaded: str) -> tuple[Any, str]:
    """Return the reports from operation `first` on, and how the process died, if it did."""
    temporary = scratch / f"temporary-{first}"
    temporary.mkdir()
    (scratch / "scenes").mkdir(exist_ok=True)
    arguments = [kind, str(SEED), str(number), str(scratch / "scenes"), str(first)]
    done = subprocess.run(
        [sys.executable, str(FOLDER / "injection_server.py"), *arguments],
        env={**os.environ, "LD_PRELOAD": preloaded, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    reports = [line for line in lines if "done" in line]
    if done.returncode == 0:
        return reports, ""
    last = lines[-1] if lines else "the start"
    return reports, f"ended with {done.returncode} in {last}:\n{done.stderr[-3000:]}"


def by_kind(failures: list[str]) -> str:
    """Count failures without their checksums and points, each with its first full message."""
    hidden = re.compile(r"\([-.e\d]+, (True|False)\)|[0-9a-f]{32}|/\S*/")
    kinds = Counter(hidden.sub("*", failure) for failure in failures)
    first = {hidden.sub("*", failure): failure for failure in reversed(failures)}
    return "\n".join(f"{number} x {first[kind]}" for kind, number in kinds.most_common())


def inject(kind: str, number: int, scratch: Path, preloaded: str = "") -> None:
    """Inject failures, print the outcomes, and fail if anything broke."""
    failures: list[str] = []
    outcomes: Counter[str] = Counter()
    fired = first = 0
    while True:
        reports, end = run_from(first, kind, number, scratch, preloaded)
        for report in reports:
            fired += report["fired"]
            outcomes.update(report["outcomes"])
            failures += [f"{report['operation']}: {failure}" for failure in report["failures"]]
            first = report["done"] + 1
        if not end:
            break
        failures.append(end)
        first += 1
        assert len(failures) < 1000, failures
    print(f"{kind}: {fired} injected, seed {SEED}: {dict(outcomes)}")
    assert not failures, f"{len(failures)} failures:\n{by_kind(failures)}"
    assert fired >= number * 9 // 10


@pytest.mark.timeout(7200)
def test_any_allocation_may_fail_in_any_operation(tmp_path: Path) -> None:
    shim = tmp_path / "failing_allocations.so"
    source = str(FOLDER / "failing_allocations.c")
    subprocess.run([need_tool("cc"), "-O1", "-shared", "-fPIC", "-o", shim, source], check=True)
    inject("allocations", count(320, 1600, 10_000), tmp_path, str(shim))


@pytest.mark.timeout(7200)
def test_any_operation_may_be_interrupted_at_any_time(tmp_path: Path) -> None:
    inject("interrupts", count(256, 1600, 20_000), tmp_path)
