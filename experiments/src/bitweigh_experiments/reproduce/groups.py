"""Figures of a run that belong together, for a claim to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from bitweigh_experiments.reproduce.formats import spelled
from bitweigh_experiments.reproduce.results import Cell, Results

__all__ = ["Group", "Groups", "along", "mean_over_k", "methods_at", "several", "ties"]


class Group(NamedTuple):
    """Figures that a claim compares."""

    where: str
    names: tuple[str, ...]
    figures: tuple[float, ...]


Groups: TypeAlias = Callable[[Results], Iterable[Group]]


def methods_at(measure: str, *methods: str, same_m: bool = False) -> Groups:
    """The methods at each setting; with `same_m` only where they have as many tables."""

    def groups(results: Results) -> Iterator[Group]:
        for setting, cells in _by_setting(results).items():
            figures = _figures(cells, measure, methods)
            if figures and not (same_m and len({cells[method].m for method in methods}) > 1):
                names = tuple(_named(cells[method], measure) for method in methods)
                yield Group(spelled(results.name_of(setting[0]), *setting[1:]), names, figures)

    return groups


def mean_over_k(measure: str, *methods: str) -> Groups:
    """The methods' means over K, of those K that all of them have."""

    def groups(results: Results) -> Iterator[Group]:
        known: dict[tuple[str, str, str, int], list[tuple[float, ...]]] = {}
        for setting, cells in _by_setting(results).items():
            figures = _figures(cells, measure, methods)
            if figures:
                known.setdefault(setting[:4], []).append(figures)
        for where, by_k in known.items():
            means = tuple(sum(of_one) / len(by_k) for of_one in zip(*by_k, strict=True))
            yield Group(spelled(results.name_of(where[0]), *where[1:]), methods, means)

    return groups


def along(axis: str, measure: str, method: str) -> Groups:
    """One method as "k" or "bits" grows, where there are at least two of them."""

    def groups(results: Results) -> Iterator[Group]:
        known: dict[str, dict[int, float]] = {}
        for cell in results.cells:
            value = getattr(cell, measure)
            if cell.method == method and value is not None:
                fixed = {"k": {"bits": cell.bits}, "bits": {"k": cell.k}}[axis]
                where = spelled(results.name_of(cell.role), cell.hasher, cell.weigher, **fixed)
                known.setdefault(where, {})[getattr(cell, axis)] = value
        for where, by_step in known.items():
            if len(by_step) > 1:
                names = [
                    f"{step}-NN" if axis == "k" else f"{step} bits" for step in sorted(by_step)
                ]
                yield Group(where, tuple(names), tuple(by_step[step] for step in sorted(by_step)))

    return groups


def ties(results: Results) -> Iterator[Group]:
    """Codes at the K-th weighted distance and at the K-th Hamming distance."""
    for one in results.ambiguity:
        where = spelled(results.name_of(one.role), one.hasher, one.weigher, one.bits, one.k)
        yield Group(where, ("weighted", "Hamming"), (one.weighted_ties, one.hamming_ties))


def several(*parts: Groups) -> Groups:
    """All groups of all parts."""
    return lambda results: (group for part in parts for group in part(results))


def _by_setting(results: Results) -> dict[tuple[str, str, str, int, int], dict[str, Cell]]:
    """Role, hasher, weigher, bits and K; then the method."""
    known: dict[tuple[str, str, str, int, int], dict[str, Cell]] = {}
    for cell in results.cells:
        setting = (cell.role, cell.hasher, cell.weigher, cell.bits, cell.k)
        known.setdefault(setting, {})[cell.method] = cell
    return known


def _figures(
    cells: dict[str, Cell], measure: str, methods: tuple[str, ...]
) -> tuple[float, ...] | None:
    """That measure of all methods, None where one is missing."""
    found = [getattr(cells[method], measure) for method in methods if method in cells]
    return tuple(found) if len(found) == len(methods) and None not in found else None


def _named(cell: Cell, measure: str) -> str:
    """The method, for counts with its number of tables: they depend on it."""
    if measure in ("buckets", "candidates") and cell.m is not None:
        return f"{cell.method} (m = {cell.m})"
    return cell.method
