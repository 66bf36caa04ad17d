"""``python -m benchmarks.server EXPERIMENT``: its figures, and whether its promise was kept."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

from benchmarks import machine
from benchmarks.server import chroma, durable, http_speed, page_speed, recovery


def main() -> int:
    """Run one experiment; return 0 if the server kept its promise."""
    arguments = _parser().parse_args()
    print(", ".join(machine.facts().values()), flush=True)
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="server-") as folder:
        kept: bool = arguments.run(Path(folder), arguments)
    print("kept" if kept else "BROKEN", arguments.promise)
    return 0 if kept else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--folder", type=Path, help="where to work; by default the temporary one")
    commands = parser.add_subparsers(required=True, metavar="EXPERIMENT")

    command = commands.add_parser("durable", parents=[shared], help=durable.__doc__)
    command.add_argument("--rounds", type=int, default=200)
    command.add_argument("--clients", type=int, default=8)
    command.add_argument("--seed", type=int, default=0)
    command.set_defaults(
        run=_durable, promise="0 acknowledged changes lost, 0 that nobody made, index as record"
    )

    command = commands.add_parser("recovery", parents=[shared], help=recovery.__doc__)
    command.add_argument("--rows", type=float, default=1e6)
    command.add_argument("--changes", type=float, default=1e5)
    command.set_defaults(run=_recovery, promise="every start within its time")

    timed = argparse.ArgumentParser(add_help=False)
    timed.add_argument("--rows", type=float, default=1e5)
    timed.add_argument("--seconds", type=float, default=8)
    timed.add_argument("--rounds", type=int, default=3)
    command = commands.add_parser("search", parents=[shared, timed], help=http_speed.__doc__)
    command.add_argument("--connections", type=int, default=16)
    command.set_defaults(
        run=_search, promise="3,500 searches a second, p99 of 15 ms, 120 us beside the engine"
    )
    command = commands.add_parser("writes", parents=[shared, timed], help=http_speed.__doc__)
    command.add_argument("--connections", type=int, default=64)
    command.set_defaults(
        run=_writes, promise="8,000 writes a second, p99 of searches beside them at most 3x"
    )
    command = commands.add_parser("chroma", parents=[shared, timed], help=chroma.__doc__)
    command.add_argument("--chroma", type=Path, required=True, help="its command, `chroma`")
    command.add_argument("--connections", type=int, default=16)
    command.set_defaults(run=_chroma, promise="4 times Chroma's rate, recall within 0.02 of it")

    command = commands.add_parser("page", parents=[shared], help=page_speed.__doc__)
    command.add_argument("--rows", type=float, default=1e6)
    command.add_argument("--visits", type=int, default=10)
    command.add_argument("--url", help="of a server that runs already, instead of one of our own")
    command.add_argument("--collection", default=page_speed.NAME, help="of that server")
    command.add_argument("--query", action="append", help="to search there; may be repeated")
    command.set_defaults(run=_page, promise="ready within 1 s, hits within 0.5 s after Enter")
    return parser


def _page(folder: Path, arguments: argparse.Namespace) -> bool:
    own = page_speed.serving_codes(folder, int(arguments.rows))
    queries = arguments.query or ["#17", "#4711", "#99"]
    with own if arguments.url is None else nullcontext(arguments.url) as url:
        visits = page_speed.times_of_page(url, arguments.collection, queries, arguments.visits)
        found = list(visits)
    for name, times in zip(page_speed.PageTimes._fields, zip(*found, strict=True), strict=True):
        print(f"{name}: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms")
    return max(one.ready for one in found) <= 1000 and max(one.hits for one in found) <= 500


def _chroma(folder: Path, arguments: argparse.Namespace) -> bool:
    rates: dict[str, list[float]] = {}
    recalls: dict[str, float] = {}
    for name, load, recall in chroma.turns(
        folder,
        arguments.chroma,
        int(arguments.rows),
        arguments.connections,
        arguments.seconds,
        arguments.rounds,
    ):
        rates.setdefault(name, []).append(load.rate)
        recalls[name] = recall
        print(
            f"{name}: {load.rate:,.0f} searches/s, p50 {load.p50_ms:.2f} ms, p99 "
            f"{load.p99_ms:.2f} ms, recall {recall:.4f}; {load.refused} refused, {load.lost} lost",
            flush=True,
        )
    ours, theirs = (max(rates[name]) for name in ("bitweigh", "Chroma"))
    print(f"best of each: {ours / theirs:.1f}x")
    return ours >= 4 * theirs and recalls["bitweigh"] >= recalls["Chroma"] - 0.02


def _search(folder: Path, arguments: argparse.Namespace) -> bool:
    rows, queries = http_speed.embeddings(int(arguments.rows))
    kept = False
    with http_speed.serving(folder, rows) as searched:
        for _ in range(arguments.rounds):
            rates = http_speed.rates_of_searches(
                searched, queries, arguments.connections, arguments.seconds
            )
            load = rates.load
            print(
                f"{load.rate:,.0f} searches/s, p50 {load.p50_ms:.2f} ms, p99 {load.p99_ms:.2f} ms, "
                f"CPU {rates.cpu_us:.0f} us of which the engine {rates.engine_us:.0f}, "
                f"beside it {rates.beside_us:.0f}; {load.refused} refused, {load.lost} lost",
                flush=True,
            )
            fine = load.rate >= 3_500 and load.p99_ms <= 15 and rates.beside_us <= 120
            kept |= fine and not load.refused + load.lost
    return kept


def _writes(folder: Path, arguments: argparse.Namespace) -> bool:
    n = int(arguments.rows)
    rows, queries = http_speed.embeddings(n)
    kept = False
    with http_speed.serving(folder, rows) as searched:
        for _ in range(arguments.rounds):
            found = http_speed.rates_of_writes(
                searched, queries, n, arguments.connections, arguments.seconds
            )
            writes, alone, beside = found.writes, found.alone, found.beside
            ratio = beside.p99_ms / alone.p99_ms
            print(
                f"{writes.rate:,.0f} writes/s, p99 {writes.p99_ms:.1f} ms, CPU {found.cpu_us:.0f} "
                f"us; searches alone {alone.rate:,.0f}/s, p99 {alone.p99_ms:.1f} ms, beside writes "
                f"{beside.rate:,.0f}/s, p99 {beside.p99_ms:.1f} ms, {ratio:.1f}x",
                flush=True,
            )
            kept |= writes.rate >= 8_000 and ratio <= 3 and not writes.refused + writes.lost
    return kept


def _durable(folder: Path, arguments: argparse.Namespace) -> bool:
    acknowledged: Counter[str] = Counter()
    under_way = replayed = bad = 0
    rounds = durable.kill_rounds(
        folder, arguments.rounds, clients=arguments.clients, seed=arguments.seed
    )
    for number, found in enumerate(rounds, 1):
        acknowledged += found.acknowledged
        under_way += found.under_way
        replayed += found.replayed
        bad += bool(found.wrong)
        for line in found.wrong:
            print(f"round {number}: {line}", flush=True)
        if number % 20 == 0 or number == arguments.rounds:
            changes = f"{acknowledged.total():,} acknowledged, {under_way:,} under way"
            print(f"{number} kills: {changes}, {replayed:,} replayed, {bad} rounds bad", flush=True)
    print(", ".join(f"{kind}: {count:,}" for kind, count in acknowledged.most_common()))
    return not bad


def _recovery(folder: Path, arguments: argparse.Namespace) -> bool:
    kept = True
    for start in recovery.time_starts(folder, int(arguments.rows), int(arguments.changes)):
        kept &= start.seconds <= start.bar
        facts = f"{start.items:,} items, {start.replayed:,} replayed"
        print(f"{start.of}: {start.seconds:.2f} s ({facts}; at most {start.bar:g} s)", flush=True)
    return kept


if __name__ == "__main__":
    sys.exit(main())
