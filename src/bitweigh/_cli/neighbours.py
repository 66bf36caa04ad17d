"""The searches of `bitweigh search`: by k or radius, for codes or vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import typer
from numpy.typing import NDArray

from bitweigh import RangeResult, SearchResult, costs
from bitweigh._cli.files import check_codes
from bitweigh._cli.folders import AnySearched, CodeIndex, has_vectors
from bitweigh._results import others
from bitweigh.typing import Ids

__all__ = ["Answer", "CodeQueries", "Options", "neighbours"]

Answer: TypeAlias = SearchResult | RangeResult
_DEFAULT_K = 10


@dataclass(frozen=True, slots=True)
class Options:
    """The options that apply to each query."""

    k: int | None
    """Number of neighbours; None means 10, unless there is a `radius`."""
    radius: float | None
    limit: int | None
    """Max rows within the radius of a query."""
    candidates: int | None
    threads: int | None
    allow: NDArray[Any] | None
    deny: NDArray[Any] | None

    def check(self) -> None:
        """Raise for values that are wrong or exclude each other."""
        if self.k is not None and self.radius is not None:
            raise typer.BadParameter("give -k or --radius, not both")
        if self.radius is not None and np.isnan(self.radius):
            raise typer.BadParameter("expected a number, got nan", param_hint="'--radius'")
        if self.limit is not None and self.radius is None:
            raise typer.BadParameter("--limit goes with --radius")
        if self.candidates is not None and self.radius is not None:
            raise typer.BadParameter("--candidates goes with -k; --radius ranks all that it finds")
        if self.candidates is not None and self.candidates < self.k_or_default:
            raise typer.BadParameter(
                f"expected at least -k, which is {self.k_or_default}, got {self.candidates}",
                param_hint="'--candidates'",
            )

    @property
    def k_or_default(self) -> int:
        """The number of neighbours of each query."""
        return _DEFAULT_K if self.k is None else self.k


@dataclass(frozen=True, slots=True)
class CodeQueries:
    """How queries to an index of codes become costs."""

    where: str
    """The source of the queries, for error messages."""
    are_costs: bool
    weights: NDArray[Any] | None
    hamming: bool

    @property
    def is_default(self) -> bool:
        """Whether none of the options is set."""
        return not (self.are_costs or self.hamming or self.weights is not None)

    def costs(self, index: CodeIndex, rows: NDArray[Any]) -> NDArray[Any]:
        """Costs (nq, n_bits, 2) for rows that are codes, floats with a number per bit, or costs."""
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
    index: AnySearched, codes: CodeQueries, options: Options
) -> Callable[[NDArray[Any], Ids | None], Answer]:
    """A function that searches for query rows; with their ids, rows are not their own neighbours.

    Raises for options that do not apply to the index.
    """
    if has_vectors(index):
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
        k = options.k_or_default + (ids is not None)
        found = _nearest(index, codes, options, rows, k)
        return found if ids is None else _without(found, ids)

    return search


def _nearest(
    index: AnySearched, codes: CodeQueries, options: Options, rows: NDArray[Any], k: int
) -> SearchResult:
    if has_vectors(index):
        return index.search(
            rows,
            k,
            rerank_from=None if options.candidates is None else max(options.candidates, k),
            threads=options.threads,
            allow=options.allow,
            deny=options.deny,
        )
    return index.search(
        codes.costs(index, rows),
        k,
        threads=options.threads,
        allow=options.allow,
        deny=options.deny,
    )


def _within(
    index: AnySearched, codes: CodeQueries, options: Options, rows: NDArray[Any], radius: float
) -> RangeResult:
    queries = rows if has_vectors(index) else codes.costs(index, rows)
    return index.range_search(
        queries,
        radius,
        limit=options.limit,
        threads=options.threads,
        allow=options.allow,
        deny=options.deny,
    )


def _without(found: SearchResult, ids: Ids) -> SearchResult:
    """Drop one neighbour of each query: the query itself or, if it is not found, the last."""
    keep = others(found.ids, ids)
    shape = len(ids), -1
    return SearchResult(found.distances[keep].reshape(shape), found.ids[keep].reshape(shape))


def _range_without(found: RangeResult, ids: Ids) -> RangeResult:
    query = np.repeat(np.arange(len(ids)), np.diff(found.lims))
    keep = found.ids != ids[query]
    lims = np.concatenate([[0], np.cumsum(np.bincount(query[keep], minlength=len(ids)))])
    return RangeResult(lims, found.distances[keep], found.ids[keep])
