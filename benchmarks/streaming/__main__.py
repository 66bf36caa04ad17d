"""``python -m benchmarks.streaming kills|full-disk|memory``: a table, a verdict, an exit code."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.streaming import full_disk, kills, memory
from benchmarks.streaming.builds import write_codes

GIB = 1 << 30
MB = 10**6


def main() -> int:
    """Run one experiment; return 0 if the build kept its promise."""
    arguments = _parser().parse_args()
    rows = int(arguments.rows)
    print(f"{rows:,} codes of 64 bits; {', '.join(machine.facts().values())}", flush=True)
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="streaming-") as folder:
        codes = Path(folder) / "codes"
        write_codes(codes, rows)
        lines, kept = arguments.run(codes, Path(folder), arguments)
    print("kept" if kept else "BROKEN", arguments.promise)
    if arguments.out is not None:
        found = {"rows": rows, "kept": kept, "results": lines, "machine": machine.facts()}
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")
    return 0 if kept else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streaming", description=__doc__)
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--rows", type=float, default=2e7)
    shared.add_argument("--folder", type=Path, help="where to build; by default the temporary one")
    shared.add_argument("--out", type=Path, help="a JSON file for the results")
    commands = parser.add_subparsers(required=True, metavar="EXPERIMENT")

    command = commands.add_parser("kills", parents=[shared], help=kills.__doc__)
    command.add_argument("--kills", type=int, default=20)
    command.add_argument("--seed", type=int, default=0)
    command.add_argument("--rows-at-once", type=float, default=5e5)
    command.set_defaults(run=_kills, promise="the same files, and nothing finished was done again")

    command = commands.add_parser("full-disk", parents=[shared], help=full_disk.__doc__)
    command.add_argument("--rows-at-once", type=float, default=5e5)
    command.add_argument("--file-limit", action="store_true", help="mount no disk, also as root")
    command.set_defaults(
        run=_full_disk, promise="the same files, and nothing finished was lost or done again"
    )

    command = commands.add_parser("memory", parents=[shared], help=memory.__doc__)
    command.add_argument("--build-memory", type=float, nargs="+", default=[1, 2, 4], help="GiB")
    command.add_argument("--threads", type=int)
    command.set_defaults(run=_memory, promise="at most 10 % more memory than build_memory")
    return parser


def _kills(
    codes: Path, folder: Path, arguments: argparse.Namespace
) -> tuple[list[dict[str, Any]], bool]:
    attempts = []
    _print_row("threads", "seconds", "ended while", "finished", "again", "same files")
    for attempt in kills.kill_builds(
        codes,
        folder,
        arguments.kills,
        rows_at_once=int(arguments.rows_at_once),
        seed=arguments.seed,
    ):
        attempts.append(attempt)
        _print_row(
            attempt.threads,
            f"{attempt.seconds:.2f}",
            attempt.ended,
            attempt.finished,
            attempt.again,
            _yes(attempt.same_files),
        )
    killed = [attempt.ended for attempt in attempts if attempt.same_files is None]
    print(f"{len(killed)} kills: {_counts(killed)}")
    kept = all(attempt.again == 0 and attempt.same_files is not False for attempt in attempts)
    return [attempt._asdict() for attempt in attempts], kept


def _full_disk(
    codes: Path, folder: Path, arguments: argparse.Namespace
) -> tuple[list[dict[str, Any]], bool]:
    mounts = full_disk.can_mount() and not arguments.file_limit
    print("a mounted disk" if mounts else "a limit on the size of files")
    attempts = []
    _print_row("room, MB", "ended while", "kept", "lost", "again", "same files")
    for attempt in (full_disk.fill_disk if mounts else full_disk.limit_files)(
        codes, folder, int(arguments.rows), rows_at_once=int(arguments.rows_at_once)
    ):
        attempts.append(attempt)
        _print_row(
            f"{attempt.room / MB:.3f}",
            attempt.ended,
            attempt.kept,
            attempt.lost,
            attempt.again,
            _yes(attempt.same_files),
        )
        if attempt.error:
            print(f"    {attempt.error}")
    kept = all(attempt.lost == attempt.again == 0 for attempt in attempts)
    return [attempt._asdict() for attempt in attempts], kept and bool(attempts[-1].same_files)


def _memory(
    codes: Path, folder: Path, arguments: argparse.Namespace
) -> tuple[list[dict[str, Any]], bool]:
    limits = [int(gibibytes * GIB) for gibibytes in arguments.build_memory]
    found = []
    _print_row("source", "limit, MiB", "peak, MiB", "share", "M rows/s", "disk, B/row", "index")
    for use in memory.measure_memory(codes, folder, limits, threads=arguments.threads):
        found.append(use)
        _print_row(
            use.source,
            f"{use.build_memory / (1 << 20):.0f}",
            f"{use.peak / (1 << 20):.0f}",
            f"{use.peak / use.build_memory:.2f}",
            f"{arguments.rows / use.seconds / 1e6:.2f}",
            f"{use.peak_disk / arguments.rows:.1f}",
            f"{use.index_bytes / arguments.rows:.1f}",
        )
    kept = all(use.peak <= memory.MAX_SHARE * use.build_memory for use in found)
    return [use._asdict() for use in found], kept


def _print_row(*cells: object) -> None:
    print(" | ".join(f"{cell!s:>11}" for cell in cells), flush=True)


def _yes(value: bool | None) -> str:
    return "" if value is None else "yes" if value else "NO"


def _counts(names: Iterable[str]) -> str:
    names = sorted(names)
    return ", ".join(f"{names.count(name)} {name}" for name in dict.fromkeys(names))


if __name__ == "__main__":
    sys.exit(main())
