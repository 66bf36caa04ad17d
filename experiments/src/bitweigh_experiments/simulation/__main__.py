"""``python -m bitweigh_experiments.simulation``: 10^11 codes on 100 nodes, as a table."""

from __future__ import annotations

import argparse

import numpy as np

from bitweigh_experiments.simulation.model import Costs, Outcome, Setting, simulate

# Bytes of a lean row of 64 bits, with its part of the directories.
_ROW_BYTES = 18.54


def main() -> None:
    """Print what a cluster of this size takes."""
    parser = argparse.ArgumentParser(prog="python -m bitweigh_experiments.simulation")
    parser.add_argument("--rows", type=float, default=1e11)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    groups = given.nodes // given.replicas
    costs = Costs()
    per_node = given.rows / groups * _ROW_BYTES
    print(
        f"{given.rows:.3g} codes of 64 bits on {given.nodes} nodes, {groups} groups of "
        f"{given.replicas} replicas: {per_node / 1e9:.0f} GB a node; while a version is replaced "
        f"whose shards all change, twice that on disk, and the pages in use of both in memory"
    )
    print("callers  dead  queries/s  p50 ms  p99 ms  hedges  batch  coordinator  holder")
    for dead in (0, 1):
        for callers in (1, 16, 64, 256, 1024):
            setting = Setting(
                groups, given.replicas, callers, 300 * callers, dead_nodes=dead, seed=given.seed
            )
            print(_line(setting, simulate(setting, costs)))
    print("groups as the fan-out grows, 64 callers:")
    for fan_out in (1, 10, 50, 100, 500):
        setting = Setting(fan_out, given.replicas, 64, 10_000, seed=given.seed)
        print(f"  {fan_out:4d} groups", _line(setting, simulate(setting, costs)))
    print("a new version whose shards have all changed, published after 10 s, 64 callers:")
    setting = Setting(groups, given.replicas, 64, 80_000, publish_at=10e3, seed=given.seed)
    for line in _published(setting, simulate(setting, costs)):
        print(line)


def _published(setting: Setting, seen: Outcome) -> list[str]:
    """What callers see before, while and after a version is published."""
    begin, switch = setting.publish_at or 0.0, seen.switched
    parts = {
        "before": (0.0, begin),
        "while it is downloaded": (begin, switch),
        "the first second of it": (switch, switch + 1e3),
        "the next nine": (switch + 1e3, switch + 10e3),
        "later": (switch + 10e3, float("inf")),
    }
    lines = [f"  served after {(switch - begin) / 1e3:.0f} s"]
    for name, (first, last) in parts.items():
        times = seen.between(first, last)
        if len(times):
            p50, p99 = np.percentile(times, (50, 99))
            lines.append(f"  {name}: {len(times):,} queries, p50 {p50:.0f} ms, p99 {p99:.0f} ms")
    return lines


def _line(setting: Setting, seen: Outcome) -> str:
    rate = len(seen.latencies) / seen.seconds
    return (
        f"{setting.callers:7d}  {setting.dead_nodes:4d}  {rate:9,.0f}  {seen.percentile(50):6.1f}  "
        f"{seen.percentile(99):6.1f}  {100 * seen.hedges / max(1, seen.questions):5.2f}%  "
        f"{seen.mean_batch:5.1f}  {100 * seen.coordinator_busy:10.0f}%  "
        f"{100 * seen.holder_busy:5.0f}%"
    )


if __name__ == "__main__":
    main()
