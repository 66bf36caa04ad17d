"""The options of `bitweigh search`, which `bitweigh cluster search` shares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import typer

from bitweigh._checks import MAX_K
from bitweigh._cli.options import FILES
from bitweigh._cli.writers import StdoutFormat
from bitweigh._system import MAX_THREADS

__all__ = [
    "CODES",
    "Allow",
    "ById",
    "Candidates",
    "CostsFlag",
    "Deny",
    "Format",
    "HammingFlag",
    "Limit",
    "NeighbourCount",
    "OutFile",
    "QueryIdColumn",
    "QueryIds",
    "Radius",
    "Request",
    "SearchThreads",
    "Weights",
]

CODES = "Indexes of codes"
"""The heading, in the help, of options for codes."""

ById: TypeAlias = Annotated[
    list[int] | None,
    typer.Option(
        "--id",
        metavar="ID",
        min=0,
        help="Search for the neighbours of this row of the index, instead of QUERIES. Repeat "
        "it for several.",
    ),
]
NeighbourCount: TypeAlias = Annotated[
    int | None,
    typer.Option("-k", metavar="N", min=1, max=MAX_K, help="Number of neighbours (default: 10)."),
]
Candidates: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=MAX_K,
        help="Rows found by their codes that are ranked by true distance, with --rerank of "
        "`build` (default: 10 per neighbour, at least 100).",
        rich_help_panel="Indexes of vectors",
    ),
]
Radius: TypeAlias = Annotated[
    float | None,
    typer.Option(metavar="R", help="Find all rows within this distance, instead of -k."),
]
Limit: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=0, help="Fail if a query has more rows than this within --radius."
    ),
]
Allow: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Search only these ids: .npy or text; - for stdin."),
]
Deny: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Leave out these ids: .npy or text; - for stdin."),
]
SearchThreads: TypeAlias = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=MAX_THREADS,
        help="Maximum threads (default: chosen from the amount of work).",
    ),
]
Weights: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The cost of each differing bit: (n_bits,), or (n_bits, 2) with the cost of an "
        "equal bit first.",
        rich_help_panel=CODES,
    ),
]
HammingFlag: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--hamming", help="QUERIES has codes; count differing bits.", rich_help_panel=CODES
    ),
]
CostsFlag: TypeAlias = Annotated[
    bool,
    typer.Option("--costs", help="QUERIES has costs, (nq, n_bits, 2).", rich_help_panel=CODES),
]
OutFile: TypeAlias = Annotated[
    str,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="File to write: .parquet .csv .jsonl .npy .npz; - for stdout.",
        rich_help_panel=FILES,
    ),
]
Format: TypeAlias = Annotated[
    StdoutFormat,
    typer.Option("--format", help="Output format on stdout.", rich_help_panel=FILES),
]
QueryIds: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Ids of the queries, for the column `query` of the answers: .npy, or text with "
        "one id per line.",
        rich_help_panel=FILES,
    ),
]
QueryIdColumn: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Parquet: the ids of the queries.", rich_help_panel=FILES),
]


class Request(NamedTuple):
    """What to search for and where to write it, as the options say."""

    queries: str | None
    by_id: Sequence[int] | None
    k: int | None
    radius: float | None
    limit: int | None
    allow: str | None
    deny: str | None
    threads: int | None
    as_json: bool
    weights: str | None
    hamming: bool
    by_costs: bool
    out: str
    stdout_format: StdoutFormat
    query_ids: str | None
    id_column: str | None
    column: Sequence[str] | None
    member: str | None
    candidates: int | None = None

    def check(self) -> None:
        """Raise for options that exclude each other."""
        if self.as_json and self.out == "-" and self.stdout_format != "jsonl":
            raise typer.BadParameter("--json is about the report of --out: give --format jsonl")
        if self.by_costs + self.hamming + (self.weights is not None) > 1:
            raise typer.BadParameter("give one of --costs, --weights and --hamming")
        if self.allow is not None and self.deny is not None:
            raise typer.BadParameter("give --allow or --deny, not both")
        if (self.queries is None) == (not self.by_id):
            raise typer.BadParameter("give QUERIES, a file or - for stdin, or --id ID; not both")
        if [self.queries, self.query_ids, self.allow, self.deny].count("-") > 1:
            raise typer.BadParameter("only one of QUERIES and the options can be -, stdin")
        of_queries = self.by_costs or self.query_ids or self.id_column or self.column or self.member
        if self.by_id and of_queries:
            raise typer.BadParameter("--id takes rows of the index: leave out options of QUERIES")

    def check_file(self) -> None:
        """Raise if the file cannot hold the answers."""
        if self.radius is not None and Path(self.out).suffix.lower() == ".npy":
            raise ValueError(
                f"{self.out}: answers to --radius differ in length: write .npz or a table"
            )
