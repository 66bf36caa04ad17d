"""The run at a large number of rows: what is done in which order, and what a second run skips.

For each length of codes: write the codes; at each size scan them with the paper's method, build
the index, search it; at full size compare the answers; delete what was written. Records are saved
after each step, and a run with the same settings goes on after the last one.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bitweigh
from bitweigh_experiments import hardware
from bitweigh_experiments.datasets import CodeFiles, write_pieces
from bitweigh_experiments.reproduce.large.build import built, remove
from bitweigh_experiments.reproduce.large.measure import (
    cold,
    compare,
    first_answer,
    our_timings,
    peer_timings,
)
from bitweigh_experiments.reproduce.large.memory import PeakMemory, folder_bytes
from bitweigh_experiments.reproduce.large.plan import LargePlan
from bitweigh_experiments.reproduce.large.precision import precisions
from bitweigh_experiments.reproduce.large.records import LargeResults, SizeRecord, Timing
from bitweigh_experiments.reproduce.large.scans import CostArray, time_linear_scan
from bitweigh_experiments.reproduce.large.setting import Origin, code_setting, origin
from bitweigh_experiments.reproduce.results import KS

__all__ = ["run_large"]

Say = Callable[[str], None]
GROWTH_PEERS = ("MIH", "MIWQ")
ALL_PEERS = (*GROWTH_PEERS, "PQTable", "PQTable_max_heap")


def run_large(plan: LargePlan, say: Say, file: Path) -> LargeResults:
    """Measure everything in the plan; `file` has the records so far after each step."""
    say("fitting the mixture")
    start = origin(plan.data, plan.rows, plan.seed)
    settings = _settings(plan, start.name)
    results = _begun(file, settings) or LargeResults(hardware.facts(), settings)
    run = _Run(plan, results, say, file, start)
    if 6 in plan.tables and not results.precision:
        n = min(plan.rows, plan.precision_rows)
        say(f"precision on {n:,} whole vectors")
        results.precision += precisions(start, plan.bits, n, plan.queries, plan.seed)
        results.save(file)
    if plan.tables & {7, 8}:
        for bits in plan.bits:
            run.codes(bits)
    return results


def _settings(plan: LargePlan, data: str) -> dict[str, object]:
    return {
        "data": data,
        "bits": list(plan.bits),
        "rows": plan.rows,
        "tables": sorted(plan.tables),
        "queries": plan.queries,
        "seed": plan.seed,
        "build_memory": plan.build_memory,
        "peer_memory": plan.peer_memory,
        "threads": plan.threads,
    }


def _begun(file: Path, settings: dict[str, object]) -> LargeResults | None:
    """Return the records of an earlier run with the same settings."""
    if not file.exists():
        return None
    try:
        earlier = LargeResults.load(file)
    except (ValueError, KeyError, TypeError):
        return None
    same = all(earlier.settings.get(name) == value for name, value in settings.items())
    return earlier if same else None


@dataclass(frozen=True, slots=True)
class _Run:
    plan: LargePlan
    results: LargeResults
    say: Say
    file: Path
    start: Origin

    def codes(self, bits: int) -> None:
        """Measure codes of one length at all sizes."""
        plan, results = self.plan, self.results
        peer_rows = plan.peer_rows(bits)
        sizes = sorted({*plan.sizes, peer_rows})
        done = {record.rows for record in results.sizes if record.bits == bits}
        if set(sizes) <= done:
            return
        setting = code_setting(self.start, bits, plan.rows, plan.queries, plan.seed)
        # Codes of another mixture or seed have another name, so kept ones are never mixed up.
        name = f"{bits}-{setting.source.fingerprint[:12]}"
        folder = plan.work / f"codes-{name}"
        self.say(f"{bits} bits: drawing {plan.rows:,} codes")
        before = len(list(folder.glob("*.npy"))) * setting.source.piece_rows
        clock = time.monotonic()
        files = write_pieces(setting.source, folder, threads=plan.threads)
        if before < plan.rows:
            rate = (plan.rows - before) / (time.monotonic() - clock)
            results.generation[str(bits)] = rate
        for n in sizes:
            if n not in done:
                names = () if n > peer_rows else ALL_PEERS if n == peer_rows else GROWTH_PEERS
                path = plan.work / f"index-{name}-{n}"
                self.size(CodeFiles(folder, bits, n), path, setting.costs, names)
        if not plan.keep:
            shutil.rmtree(files.paths[0].parent)

    def size(self, source: CodeFiles, path: Path, costs: CostArray, peers: tuple[str, ...]) -> None:
        """Measure the first codes: the paper's scan before anything is warm, then the index."""
        plan, bits, n = self.plan, source.n_bits, source.rows
        here = f"{bits} bits, {n:,} rows"
        timings: list[Timing] = []
        self.say(f"{here}: the paper's scan")
        for k in KS:
            queries = costs[: plan.scan_queries]
            scan = time_linear_scan(source, queries, k)
            ms = 1e3 * scan.seconds
            timings.append(
                Timing(bits, n, k, "Linear Scan", ms, len(queries), cpu_share=scan.cpu_share)
            )
        self.say(f"{here}: building the index")
        build = built(source, path, plan.build_memory)
        self.say(f"{here}: searching")
        first = first_answer(path, costs)
        for k in KS:
            queries = costs[: plan.cold_queries]
            cold_ms = cold(path, queries, k)
            if cold_ms is not None:
                timings.append(Timing(bits, n, k, "bitweigh cold", cold_ms, len(queries)))
        with PeakMemory() as query_peak:
            index = bitweigh.Index.load(path, mmap=True)
            timings += our_timings(index, costs, plan.threads)
        if n == plan.rows:
            self.say(f"{here}: comparing answers with a scan and with the definition")
            self.results.exactness.append(
                compare(index, source, costs, plan.definition_queries, plan.threads)
            )
        parts = {name: int(value) for name, value in index.memory()._asdict().items()}
        del index
        if peers:
            self.say(f"{here}: {', '.join(peers)}")
            timings += peer_timings(source, costs, peers)
        self.results.timings += timings
        self.results.sizes.append(
            SizeRecord(
                bits,
                n,
                build.how,
                build.seconds,
                folder_bytes(path),
                build.peak_anon,
                query_peak.bytes,
                parts,
                first.warm,
                first.cold,
            )
        )
        if not plan.keep:
            remove(path)
        self.results.save(self.file)
