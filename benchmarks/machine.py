"""Facts about the machine, software and commit that benchmark figures depend on."""

from __future__ import annotations

from pathlib import Path

from bitweigh_experiments import hardware

__all__ = ["facts"]

_RESULTS = (
    *("docs/benchmarks.md", "docs/choosing.md", "docs/embeddings.md", "docs/tuning.md"),
    *("docs/growth.svg", "docs/quality.svg", "docs/quality-bytes.svg", "docs/quality-time.svg"),
)


def facts() -> dict[str, str]:
    """Return all known facts by name, in the order in which to print them."""
    values = hardware.facts()
    date = values.pop("date")
    values |= {"FAISS": hardware.version_of("faiss-cpu"), "commit": _commit(), "date": date}
    return {name: value for name, value in values.items() if value}


def _commit() -> str:
    here = Path(__file__).parent
    commit = hardware.output_of("git", "rev-parse", "--short", "HEAD", folder=here)
    # Pages and plots of results do not count as changes: a measurement rewrites them.
    status = hardware.output_of(
        "git", "--no-optional-locks", "status", "--porcelain", "-uno", folder=here
    )
    if commit and [line for line in status.splitlines() if not line.endswith(_RESULTS)]:
        return f"{commit} with changes"
    return commit
