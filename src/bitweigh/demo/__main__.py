"""Run the demo: hash, search, check, time, print."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the demo; 1 if an answer was not exact."""
    try:
        import rich.console
        import rich.progress
        import sklearn  # noqa: F401
    except ModuleNotFoundError as error:
        print(f'The demo needs {error.name}: pip install "bitweigh[demo]"', file=sys.stderr)
        return 1
    from bitweigh.demo import measure, tables

    console = rich.console.Console(highlight=False)
    found: dict[int, list[measure.Line]] = {}
    races: list[measure.Race] = []
    with rich.progress.Progress(console=console, transient=True) as progress:
        task = progress.add_task("loading the digits", total=1 + 2 * len(measure.BITS))
        digits = measure.load_digits()
        for n_bits in measure.BITS:
            progress.update(task, advance=1, description=f"searching {n_bits} bits")
            found[n_bits] = measure.compare(digits, n_bits)
        for n_bits in measure.BITS:
            progress.update(task, advance=1, description=f"timing {n_bits} bits on many rows")
            races.append(measure.race(digits, n_bits))
        progress.update(task, advance=1)
    tables.show_quality(console, found)
    tables.show_races(console, races)
    exact = all(line.exact for lines in found.values() for line in lines)
    exact = exact and all(entry.exact for entry in races)
    tables.show_check(console, exact)
    tables.show_next(console)
    return 0 if exact else 1


if __name__ == "__main__":
    sys.exit(main())
