"""`bitweigh paper`: the experiments of the paper that this library implements."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bitweigh_experiments.reproduce import Plan, Results, reproduce
from bitweigh_experiments.reproduce.claims import claims, clearest_first
from bitweigh_experiments.reproduce.csv_file import write_csv
from bitweigh_experiments.reproduce.large import LargePlan, LargeResults, is_large, run_large
from bitweigh_experiments.reproduce.large.likeness import likeness, table
from bitweigh_experiments.reproduce.large.plan import LARGE_ROWS, LARGE_TABLES
from bitweigh_experiments.reproduce.large.report import write_large_report
from bitweigh_experiments.reproduce.published import TABLES
from bitweigh_experiments.reproduce.report import write_report

__all__ = ["app"]

app = typer.Typer(help="The paper's experiments.", no_args_is_help=True)
NAME = "paper-reproduction"
LARGE_NAME = "paper-large"


def _row_count(text: str) -> int:
    """Parse a number of rows written like 20000, 2e4 or 20_000."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 1000 <= value < 2**32 or value != int(value):
        raise typer.BadParameter(f"expected a whole number from 1000 to 4e9, got {text!r}")
    return int(value)


@app.command("reproduce")
def reproduce_command(
    data: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            file_okay=False,
            help="Folder with data sets; see docs/reproduce.md for the file names. Without it all "
            "rows are generated.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(file_okay=False, help="Folder for the results.")] = Path(
        NAME
    ),
    tables: Annotated[
        str | None,
        typer.Option(
            help="Only what these tables need, such as 1,3-5 or 6 7 8. The paper has 1 to 16."
        ),
    ] = None,
    more_tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TABLE]...", help="More tables after --tables, as in 6 7 8."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Use 100,000 rows and codes of 32 and 64 bits: two minutes."),
    ] = False,
    rows: Annotated[
        int | None,
        typer.Option(
            parser=_row_count,
            metavar="N",
            help="Rows to generate, such as 20000 or 1e9; real sets are cut to this many.",
        ),
    ] = None,
    queries: Annotated[int | None, typer.Option(min=1, help="Queries per data set.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    large: Annotated[
        bool | None,
        typer.Option(
            "--large/--in-memory",
            help="Tables 6 to 8 with codes and index on disk, in bounded memory; the default for "
            "these tables from 2e6 rows on.",
        ),
    ] = None,
    work: Annotated[
        Path | None,
        typer.Option(
            file_okay=False, help="With --large, folder for codes and indexes; by default in --out."
        ),
    ] = None,
    build_memory: Annotated[
        float, typer.Option(min=0.01, help="With --large, GiB that a build may use.")
    ] = 4.0,
    peer_memory: Annotated[
        float, typer.Option(min=0.001, help="With --large, GiB that the paper's methods may use.")
    ] = 12.0,
    keep: Annotated[
        bool, typer.Option("--keep", help="With --large, keep codes and indexes.")
    ] = False,
) -> None:
    """Repeat the paper's tables and figures; write JSON, CSV and an HTML report.

    Runs on one thread. Without --quick it takes an hour or two for a million rows.

    With --large it repeats Tables 6 to 8 at any number of rows, and writes JSON and Markdown.

    Example: bitweigh paper reproduce --quick --out results
    Example: bitweigh paper reproduce --tables 6 7 8 --rows 1e9 --data DIR
    """
    console = Console(stderr=True)
    numbers = _table_numbers(tables, more_tables)
    if _is_large(large, numbers, rows):
        large_plan = LargePlan(
            rows=rows or LARGE_ROWS,
            work=work or out / "work",
            data=data,
            tables=numbers or LARGE_TABLES,
            queries=queries or 1000,
            seed=seed,
            build_memory=int(build_memory * 2**30),
            peer_memory=int(peer_memory * 2**30),
            keep=keep,
        )
        typer.echo(_run_large(large_plan, out, console))
        return
    plan = Plan.of(data, quick, rows, queries, seed, numbers)
    try:
        out.mkdir(parents=True, exist_ok=True)
        results = _measure(plan, console, out / f"{NAME}.json")
    except KeyboardInterrupt:
        console.print(f"stopped; {out / NAME}.json has what was measured", soft_wrap=True)
        raise typer.Exit(130) from None
    results.save(out / f"{NAME}.json")
    write_csv(results, out / f"{NAME}.csv")
    write_report(results, out / f"{NAME}.html")
    for claim in clearest_first(claims(results)):
        if claim.n_settings:
            line = f"{claim.n_held:4} of {claim.n_settings:4}  {claim.text}"
            console.print(line, highlight=False, soft_wrap=True)
    typer.echo(out / f"{NAME}.html")


@app.command("likeness")
def likeness_command(
    data: Annotated[
        Path, typer.Option(exists=True, file_okay=False, help="Folder with dsift480k_u8.npy.")
    ],
    bits: Annotated[int, typer.Option(min=8, max=512, help="Bits of a code.")] = 64,
    queries: Annotated[int, typer.Option(min=1, help="Queries.")] = 4000,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Compare the neighbours of drawn codes with those of real ones; print a Markdown table.

    The rows of --large are drawn like dense SIFT descriptors: how much like them?

    Example: bitweigh paper likeness --data DIR
    """
    if bits % 8:
        raise typer.BadParameter(f"expected a multiple of 8, got {bits}", param_hint="'--bits'")
    typer.echo(table(likeness(data, bits, queries, seed)))


@app.command("report")
def report_command(
    records: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="The JSON file of a run.")
    ],
) -> None:
    """Rewrite the report of a run, and its CSV file or plots, beside its JSON file.

    Example: bitweigh paper report results/paper-reproduction.json
    """
    try:
        if is_large(records):
            typer.echo(write_large_report(LargeResults.load(records), records.with_suffix(".md")))
            return
        results = Results.load(records)
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{records} holds no records of `reproduce`: {error}") from None
    write_csv(results, records.with_suffix(".csv"))
    write_report(results, records.with_suffix(".html"))
    typer.echo(records.with_suffix(".html"))


def _measure(plan: Plan, console: Console, file: Path) -> Results:
    """Run the plan with a progress bar on a terminal, else with a log line for each step.

    After each setting the results so far are saved to `file`, so a stopped run loses little.
    """

    def save(results: Results) -> None:
        results.save(file)

    if not console.is_terminal:

        def log(share: float, doing: str) -> None:
            console.print(f"{share:4.0%}  {doing}", soft_wrap=True)

        return reproduce(plan, log, save)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    ) as bar:
        task = bar.add_task("", total=1.0)

        def show(share: float, doing: str) -> None:
            bar.update(task, completed=share, description=doing)

        return reproduce(plan, show, save)


def _is_large(large: bool | None, tables: frozenset[int] | None, rows: int | None) -> bool:
    """Whether codes and index are on disk: if asked for, or by the number of rows."""
    fits = tables is not None and tables <= LARGE_TABLES
    if large and not fits:
        raise typer.BadParameter("needs --tables 6, 7 or 8", param_hint="'--large'")
    return bool(large) if large is not None else fits and (rows or 0) >= LARGE_ROWS


def _run_large(plan: LargePlan, out: Path, console: Console) -> Path:
    """Measure, and write the records, the report and the plots; return the report's path."""
    out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()

    def say(text: str) -> None:
        console.print(f"{time.monotonic() - start:7.0f} s  {text}", highlight=False, soft_wrap=True)

    try:
        results = run_large(plan, say, out / f"{LARGE_NAME}.json")
    except KeyboardInterrupt:
        console.print(f"stopped; the same command goes on from {out}", soft_wrap=True)
        raise typer.Exit(130) from None
    results.save(out / f"{LARGE_NAME}.json")
    return write_large_report(results, out / f"{LARGE_NAME}.md")


def _table_numbers(text: str | None, more: list[str] | None = None) -> frozenset[int] | None:
    """Parse table numbers written like "1,3-5", or apart: "6 7 8"."""
    if text is None:
        if more:
            raise typer.BadParameter(f"unexpected {more[0]!r}", param_hint="arguments")
        return None
    text = ",".join([text, *(more or [])])
    numbers: set[int] = set()
    for part in text.split(","):
        ends = [int(end) if end.strip().isdecimal() else 0 for end in part.split("-")]
        if len(ends) > 2 or not 1 <= ends[0] <= ends[-1] <= len(TABLES):
            raise typer.BadParameter(
                f"expected 1 to {len(TABLES)}, as in 1,3-5, got {text!r}",
                param_hint="'--tables'",
            )
        numbers.update(range(ends[0], ends[-1] + 1))
    return frozenset(numbers)
