"""The command line of ``python -m benchmarks.engine``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine, report
from benchmarks.engine import calls, filters, growth, hard, life, memory, paper, variants
from benchmarks.engine.sections import Display, Report, Settings

SECTIONS: dict[str, Callable[[Settings, Display], Report]] = {
    "paper": paper.run,
    "hard": hard.run,
    "growth": growth.run,
    "calls": calls.run,
    "variants": variants.run,
    "filters": filters.run,
    "life": life.run,
    "memory": memory.run,
}


def main() -> None:
    """Measure the sections one after the other; write each as soon as it is done."""
    arguments = _parser().parse_args()
    chosen = arguments.sections or list(SECTIONS)
    settings = Settings(arguments.rows, arguments.rounds, arguments.data)
    facts = machine.facts()
    console = Console()
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    for name in chosen:
        with Progress(*columns, console=console, auto_refresh=False, transient=True) as progress:
            section = SECTIONS[name](settings, Display(progress))
        if arguments.out is not None:
            _save(arguments.out, name, {"machine": facts, "figures": section.figures})
        text = f"{report.machine_list(facts)}\n\n{section.markdown}"
        if arguments.markdown is not None:
            report.write_between_markers(arguments.markdown, f"engine-{name}", text)
            if section.plot is not None:
                arguments.markdown.with_name(f"{name}.svg").write_text(section.plot)
        console.print(f"## {name}\n\n{text}\n", markup=False, highlight=False, soft_wrap=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.engine",
        description="Measure the engine by its own clock; docs/benchmarks.md explains how.",
    )
    parser.add_argument(
        "sections",
        nargs="*",
        type=_section,
        metavar="SECTION",
        help=f"{', '.join(SECTIONS)} (all)",
    )
    parser.add_argument("--rows", type=_rows, default=10**7, help="maximum rows (10e6)")
    parser.add_argument("--rounds", type=_positive, default=7, help="default: 7")
    parser.add_argument("--data", type=Path, help="folder with the real data sets")
    parser.add_argument("--out", type=Path, help="write the figures to this JSON file")
    parser.add_argument("--markdown", type=Path, help="file with the markers of the sections")
    return parser


def _section(name: str) -> str:
    if name not in SECTIONS:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(SECTIONS)}, got {name!r}")
    return name


def _rows(text: str) -> int:
    rows = int(float(text))
    if rows < growth.SIZES[0]:
        raise argparse.ArgumentTypeError(f"must be at least {growth.SIZES[0]}, got {text}")
    return rows


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _save(file: Path, name: str, section: dict[str, object]) -> None:
    """Add a section to the file, keeping those of other runs."""
    file.parent.mkdir(parents=True, exist_ok=True)
    everything = json.loads(file.read_text()) if file.exists() else {}
    everything[name] = section
    file.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
