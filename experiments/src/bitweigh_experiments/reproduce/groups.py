"""Groups of a run's figures that claims compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from bitweigh_experiments.reproduce.formats import spelled
from bitweigh_experiments.reproduce.results import Cell, Results

__all__ = ["Group", "Groups", "along", "mean_over_k", "methods_at", "several", "ties"]


class Group(NamedTuple):
    """Figures that a claim compares, with their setting and names."""

    where: str
    names: tuple[str, ...]
    figures: tuple[float, ...]


Groups: TypeAlias = Callable[[Results], Iterable[Group]]


def methods_at(measure: str, *methods: str, same_m: bool = False) -> Groups:
    """Group the methods at each setting; with `same_m` only where they use equally many tables."""

    def groups(results: Results) -> Iterator[Group]:
        for setting, cells in _by_setting(results).items():
            figures = _figures(cells, measure, methods)
            if figures and not (same_m and len({cells[method].m for method in methods}) > 1):
                names = tuple(_named(cells[method], measure) for method in methods)
                yield Group(spelled(results.name_of(setting[0]), *setting[1:]), names, figures)

    return groups


def mean_over_k(measure: str, *methods: str) -> Groups:
    """Group the methods' means over those K for which all were measured."""

    def groups(results: Results) -> Iterator[Group]:
        by_setting: dict[tuple[str, str, str, int], list[tuple[float, ...]]] = {}
        for setting, cells in _by_setting(results).items():
            figures = _figures(cells, measure, methods)
            if figures:
                by_setting.setdefault(setting[:4], []).append(figures)
        for where, by_k in by_setting.items():
            means = tuple(
                sum(figures_of_method) / len(by_k) for figures_of_method in zip(*by_k, strict=True)
            )
            yield Group(spelled(results.name_of(where[0]), *where[1:]), methods, means)

    return groups


def along(axis: str, measure: str, method: str) -> Groups:
    """Group one method's figures as `axis`, "k" or "bits", grows; at least two per group."""

    def groups(results: Results) -> Iterator[Group]:
        by_setting: dict[str, dict[int, float]] = {}
        for cell in results.cells:
            value = getattr(cell, measure)
            if cell.method == method and value is not None:
                fixed = {"k": {"bits": cell.bits}, "bits": {"k": cell.k}}[axis]
                where = spelled(results.name_of(cell.role), cell.hasher, cell.weigher, **fixed)
                by_setting.setdefault(where, {})[getattr(cell, axis)] = value
        for where, by_step in by_setting.items():
            if len(by_step) > 1:
                names = [
                    f"{step}-NN" if axis == "k" else f"{step} bits" for step in sorted(by_step)
                ]
                yield Group(where, tuple(names), tuple(by_step[step] for step in sorted(by_step)))

    return groups


def ties(results: Results) -> Iterator[Group]:
    """Group the numbers of codes at the K-th weighted and at the K-th Hamming distance."""
    for ambiguity in results.ambiguity:
        where = spelled(
            results.name_of(ambiguity.role),
            ambiguity.hasher,
            ambiguity.weigher,
            ambiguity.bits,
            ambiguity.k,
        )
        yield Group(
            where, ("weighted", "Hamming"), (ambiguity.weighted_ties, ambiguity.hamming_ties)
        )


def several(*parts: Groups) -> Groups:
    """Chain the groups of all parts."""
    return lambda results: (group for part in parts for group in part(results))


def _by_setting(results: Results) -> dict[tuple[str, str, str, int, int], dict[str, Cell]]:
    """Index cells by (role, hasher, weigher, bits, K), then by method."""
    by_setting: dict[tuple[str, str, str, int, int], dict[str, Cell]] = {}
    for cell in results.cells:
        setting = (cell.role, cell.hasher, cell.weigher, cell.bits, cell.k)
        by_setting.setdefault(setting, {})[cell.method] = cell
    return by_setting


def _figures(
    cells: dict[str, Cell], measure: str, methods: tuple[str, ...]
) -> tuple[float, ...] | None:
    """Return the measure of all methods, None if any is missing."""
    found = [getattr(cells[method], measure) for method in methods if method in cells]
    return tuple(found) if len(found) == len(methods) and None not in found else None


def _named(cell: Cell, measure: str) -> str:
    """Return the method's name; for counts with its number of tables, which they depend on."""
    if measure in ("buckets", "candidates") and cell.m is not None:
        return f"{cell.method} (m = {cell.m})"
    return cell.method
