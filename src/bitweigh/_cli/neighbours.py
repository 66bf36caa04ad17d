"""The search that `bitweigh search` asks for: by k or radius, of codes or of vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray

from bitweigh import Index, RangeResult, SearchResult, costs
from bitweigh._cli.files import check_codes
from bitweigh._cli.folders import AnyIndex
from bitweigh.typing import Ids

__all__ = ["Answer", "CodeQueries", "Options", "neighbours"]

Answer: TypeAlias = SearchResult | RangeResult
_DEFAULT_K = 10


@dataclass(frozen=True, slots=True)
class Options:
    """What is wanted of each query."""

    k: int | None
    """10 if neither it nor `radius` is given."""
    radius: float | None
    candidates: int | None
    threads: int | None
    allow: NDArray[Any] | None
    deny: NDArray[Any] | None

    def check(self) -> None:
        """Raise for options that exclude each other."""
        if self.k is not None and self.radius is not None:
            raise typer.BadParameter("give -k or --radius, not both")
        if self.radius is not None and np.isnan(self.radius):
            raise typer.BadParameter("expected a number, got nan", param_hint="'--radius'")
        if self.candidates is not None and self.radius is not None:
            raise typer.BadParameter("--candidates goes with -k; --radius ranks all that it finds")
        if self.candidates is not None and self.candidates < self.wanted_k:
            raise typer.BadParameter(
                f"expected at least -k, which is {self.wanted_k}, got {self.candidates}",
                param_hint="'--candidates'",
            )

    @property
    def wanted_k(self) -> int:
        """Neighbours of each query."""
        return _DEFAULT_K if self.k is None else self.k


@dataclass(frozen=True, slots=True)
class CodeQueries:
    """How queries of an index of codes become costs."""

    where: str
    """Where the queries come from, for errors."""
    are_costs: bool
    weights: NDArray[Any] | None
    hamming: bool

    @property
    def is_default(self) -> bool:
        """Whether nothing was said about it."""
        return not (self.are_costs or self.hamming or self.weights is not None)

    def costs(self, index: Index, rows: NDArray[Any]) -> NDArray[Any]:
        """Costs (nq, n_bits, 2) of codes, of floats with a number per bit, or of costs."""
        n_bits, bitorder = index.n_bits, index.bitorder
        is_float = rows.dtype.kind == "f"
        if self.are_costs or (is_float and rows.ndim == 3):
            return rows
        if is_float and self.is_default:
            if rows.shape[1] != n_bits:
                raise ValueError(
                    f"float queries have one number for each of the {n_bits} bits, got "
                    f"{rows.shape[1]}; codes are uint8, and costs (nq, {n_bits}, 2)"
                )
            return costs.inner_product(rows)
        check_codes(self.where, rows, n_bits)
        if self.weights is None:
            return costs.hamming(rows, n_bits, bitorder=bitorder)
        return costs.from_weights(rows, self.weights, bitorder=bitorder)


def neighbours(
    index: AnyIndex, codes: CodeQueries, options: Options
) -> Callable[[NDArray[Any], Ids | None], Answer]:
    """The search for rows of queries; given their ids, rows of the index leave themselves out."""
    if not isinstance(index, Index):
        if not codes.is_default:
            raise typer.BadParameter(
                "--costs, --weights and --hamming are for indexes of codes; this one has vectors"
            )
        if options.candidates is not None and index.rerank is None:
            raise typer.BadParameter(
                "--candidates needs an index that keeps vectors, built with --rerank"
            )
    elif options.candidates is not None:
        raise typer.BadParameter("--candidates is for indexes of vectors; this one has codes")
    elif codes.weights is not None and len(codes.weights) != index.n_bits:
        raise ValueError(
            f"--weights must have one for each of the {index.n_bits} bits, got {len(codes.weights)}"
        )

    def search(rows: NDArray[Any], ids: Ids | None) -> Answer:
        if options.radius is not None:
            within = _within(index, codes, options, rows, options.radius)
            return within if ids is None else _range_without(within, ids)
        k = options.wanted_k + (ids is not None)
        found = _nearest(index, codes, options, rows, k)
        return found if ids is None else _without(found, ids)

    return search


def _nearest(
    index: AnyIndex, codes: CodeQueries, options: Options, rows: NDArray[Any], k: int
) -> SearchResult:
    if isinstance(index, Index):
        return index.search(
            codes.costs(index, rows),
            k,
            threads=options.threads,
            allow=options.allow,
            deny=options.deny,
        )
    return index.search(
        rows,
        k,
        candidates=None if options.candidates is None else max(options.candidates, k),
        threads=options.threads,
        allow=options.allow,
        deny=options.deny,
    )


def _within(
    index: AnyIndex, codes: CodeQueries, options: Options, rows: NDArray[Any], radius: float
) -> RangeResult:
    queries = codes.costs(index, rows) if isinstance(index, Index) else rows
    return index.range_search(
        queries, radius, threads=options.threads, allow=options.allow, deny=options.deny
    )


def _without(found: SearchResult, ids: Ids) -> SearchResult:
    """One neighbour less for each query: itself or, where it is not among them, the last."""
    drop = found.ids == ids[:, np.newaxis]
    drop[~drop.any(axis=1), -1] = True
    distances, left = (array[~drop].reshape(len(ids), -1) for array in (found.distances, found.ids))
    return SearchResult(distances, left)


def _range_without(found: RangeResult, ids: Ids) -> RangeResult:
    query = np.repeat(np.arange(len(ids)), np.diff(found.lims))
    keep = found.ids != ids[query]
    lims = np.concatenate([[0], np.cumsum(np.bincount(query[keep], minlength=len(ids)))])
    return RangeResult(lims, found.distances[keep], found.ids[keep])
