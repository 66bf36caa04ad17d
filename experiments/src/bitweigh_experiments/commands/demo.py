"""`bitweigh demo`: semantic search over real documents, three ways side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bitweigh_experiments.demo.run import Settings, run
from bitweigh_experiments.demo.serving import PORT, serve_documents

__all__ = ["demo_command"]


def demo_command(
    queries: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY",
            help="What to look for, each in quotes. Without any, the demo asks for queries, or "
            "uses ten samples if stdin is not a terminal.",
            show_default=False,
        ),
    ] = None,
    bits: Annotated[int, typer.Option(min=1, max=256, help="Code length in bits.")] = 128,
    k: Annotated[
        int, typer.Option("-k", min=1, max=1000, help="Number of documents to find.")
    ] = 10,
    texts: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Search this file, one document per line, instead of package descriptions.",
        ),
    ] = None,
    fetch: Annotated[
        bool,
        typer.Option(
            "--fetch", help="Let apt fetch Debian's long descriptions into a separate folder."
        ),
    ] = False,
    python: Annotated[
        bool,
        typer.Option("--python", help="Search the texts about Python that come with this package."),
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Print without colours and lines.")
    ] = False,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show the documents in a browser instead.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="With --serve: the port of the server.")
    ] = PORT,
) -> None:
    """Search real documents by meaning: float cosine, weighted bits and plain Hamming side by side.

    Offline: the embedding model comes with this package. The documents are the descriptions of
    Debian's packages where apt has them, else summaries from Python's standard library.

    Example: bitweigh demo "find duplicate files on disk"
    """
    if texts is not None and fetch:
        raise typer.BadParameter("not together with --texts", param_hint="'--fetch'")
    if python and (texts is not None or fetch):
        raise typer.BadParameter("not together with --texts or --fetch", param_hint="'--python'")
    settings = Settings(tuple(queries or ()), bits, k, texts, fetch, plain, python)
    raise typer.Exit(serve_documents(settings, port) if serve else run(settings))
