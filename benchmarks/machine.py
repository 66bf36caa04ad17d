"""Facts about the machine, the software and the commit that the benchmarks' figures depend on."""

from __future__ import annotations

from pathlib import Path

from bitweigh_experiments import hardware

__all__ = ["facts"]

_RESULTS = ("docs/benchmarks.md", "docs/tuning.md", "docs/growth.svg")


def facts() -> dict[str, str]:
    """Everything worth telling, in the order in which to print it."""
    known = hardware.facts()
    date = known.pop("date")
    known |= {"FAISS": hardware.version_of("faiss-cpu"), "commit": _commit(), "date": date}
    return {name: fact for name, fact in known.items() if fact}


def _commit() -> str:
    here = Path(__file__).parent
    commit = hardware.output_of("git", "rev-parse", "--short", "HEAD", folder=here)
    # The pages and the plot of results change by being measured.
    status = hardware.output_of(
        "git", "--no-optional-locks", "status", "--porcelain", "-uno", folder=here
    )
    if commit and [line for line in status.splitlines() if not line.endswith(_RESULTS)]:
        return f"{commit} with changes"
    return commit
