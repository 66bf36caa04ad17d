"""`python -m benchmarks.cluster exact`: shards against one index over random cases."""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from benchmarks.cluster.exactness import check_cases

_BATCH = 500


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    exact = commands.add_parser("exact", help="shards in memory against one index, every byte")
    exact.add_argument("--cases", type=int, default=100_000)
    arguments = parser.parse_args()
    _exact(arguments.cases)


def _exact(cases: int) -> None:
    clock = time.monotonic()
    seen: Counter[str] = Counter()
    numbers = [range(first, min(first + _BATCH, cases)) for first in range(0, cases, _BATCH)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for counted in pool.map(check_cases, numbers):
            seen += counted
    print(f"{seen['cases']:,} cases equal in every byte, {time.monotonic() - clock:.0f} s")
    for name, count in sorted(seen.items()):
        print(f"  {name}: {count:,}")


if __name__ == "__main__":
    main()
