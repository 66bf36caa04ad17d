"""`bitweigh paper`: the experiments of the paper that this library implements."""

from __future__ import annotations

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
from bitweigh_experiments.reproduce.published import TABLES
from bitweigh_experiments.reproduce.report import write_report

__all__ = ["app"]

app = typer.Typer(help="The paper's experiments.", no_args_is_help=True)
NAME = "paper-reproduction"


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
        typer.Option(help="Only what these tables need, such as 1,3-5. The paper has 1 to 16."),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Use 100,000 rows and codes of 32 and 64 bits: two minutes."),
    ] = False,
    rows: Annotated[
        int | None, typer.Option(min=1000, help="Rows to generate; real sets are cut to this many.")
    ] = None,
    queries: Annotated[int | None, typer.Option(min=1, help="Queries per data set.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
) -> None:
    """Repeat the paper's tables and figures; write JSON, CSV and an HTML report.

    Runs on one thread. Without --quick it takes an hour or two for a million rows.

    Example: bitweigh paper reproduce --quick --out results
    """
    console = Console(stderr=True)
    plan = Plan.of(data, quick, rows, queries, seed, _table_numbers(tables))
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


@app.command("report")
def report_command(
    records: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help="The JSON file of a run.")
    ],
) -> None:
    """Rewrite the CSV file and the HTML report of a run, beside its JSON file.

    Example: bitweigh paper report results/paper-reproduction.json
    """
    try:
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


def _table_numbers(text: str | None) -> frozenset[int] | None:
    """Parse table numbers written like "1,3-5"."""
    if text is None:
        return None
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
