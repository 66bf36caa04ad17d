"""`python -m benchmarks.cluster exact|builds|serve|faults|cut|publish`: shards and clusters."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

from benchmarks.cluster.builds import measure_builds
from benchmarks.cluster.exactness import check_cases

_BATCH = 500


def main() -> int:
    """Run what the command line asks for; return 0 if promises were kept."""
    arguments = _parser().parse_args()
    return 0 if arguments.run(arguments) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="WHAT")
    exact = commands.add_parser("exact", help="shards in memory against one index, every byte")
    exact.add_argument("--cases", type=int, default=100_000)
    exact.set_defaults(run=_exact)
    builds = commands.add_parser("builds", help="one process, two, and one that is killed")
    builds.add_argument("--rows", type=float, default=4e7)
    builds.add_argument("--shards", type=int, default=4)
    builds.set_defaults(run=lambda given: measure_builds(int(given.rows), given.shards))
    serve = commands.add_parser("serve", help="times of queries on a Ray cluster")
    serve.add_argument("--rows", type=float, default=4e6)
    serve.set_defaults(run=_serve)
    faults = commands.add_parser("faults", help="faults under queries without pause")
    faults.add_argument("--rows", type=float, default=4e5)
    faults.set_defaults(run=_faults)
    cut = commands.add_parser("cut", help="a link that is cut under queries; needs root")
    cut.add_argument("--seconds", type=float, default=45.0)
    cut.set_defaults(run=_cut)
    publish = commands.add_parser("publish", help="versions published under queries, from S3")
    publish.add_argument("--answers", type=int, default=12_000)
    publish.set_defaults(run=_publish)
    return parser


def _exact(arguments: argparse.Namespace) -> bool:
    cases: int = arguments.cases
    clock = time.monotonic()
    seen: Counter[str] = Counter()
    numbers = [range(first, min(first + _BATCH, cases)) for first in range(0, cases, _BATCH)]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for counted in pool.map(check_cases, numbers):
            seen += counted
    print(f"{seen['cases']:,} cases equal in every byte, {time.monotonic() - clock:.0f} s")
    for name, count in sorted(seen.items()):
        print(f"  {name}: {count:,}")
    return True


def _serve(arguments: argparse.Namespace) -> bool:
    from benchmarks.cluster.serving import measure

    measure(int(arguments.rows))
    return True


def _faults(arguments: argparse.Namespace) -> bool:
    from benchmarks.cluster.faults import run_faults

    loads = run_faults(int(arguments.rows)).values()
    return not any(load.errors or load.wrong or max(load.times) > 0.5 for load in loads)


def _cut(arguments: argparse.Namespace) -> bool:
    from benchmarks.cluster.networks import run_cut

    saw = run_cut(arguments.seconds)
    print(f"link cut for {arguments.seconds:g} s: {saw}")
    return not (saw.errors or saw.wrong or saw.worst > 0.5)


def _publish(arguments: argparse.Namespace) -> bool:
    from benchmarks.cluster.publishing import run_publishing

    return run_publishing(arguments.answers)


if __name__ == "__main__":
    sys.exit(main())
