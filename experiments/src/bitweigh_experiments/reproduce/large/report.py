"""The report of a run at a large number of rows, as Markdown: the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bitweigh_experiments.reproduce.formats import MISSING, percent, three_digits
from bitweigh_experiments.reproduce.large.growth import draw, exponents, size_exponents
from bitweigh_experiments.reproduce.large.records import LargeResults, SizeRecord
from bitweigh_experiments.reproduce.published import MACHINE, Printed, printed
from bitweigh_experiments.reproduce.results import KS

__all__ = ["markdown", "write_large_report"]

PAPER_ROWS = 1_000_000_000
QUIET_SHARE = 0.95  # of a CPU, from which on a measurement counts as undisturbed
OURS = {
    "bitweigh": "bitweigh, warm, one thread",
    "bitweigh cold": "bitweigh, cold, one thread",
    "bitweigh batch": "bitweigh, all queries in a batch",
}


def write_large_report(results: LargeResults, path: Path) -> Path:
    """Write the report, and beside it a plot of the growth for each length of codes.

    There are no plots without matplotlib. Returns the path of the report.
    """
    plots = {}
    for bits in _lengths(results):
        plot = path.with_name(f"{path.stem}-{bits}.svg")
        try:
            plot.write_text(draw(results, bits), encoding="utf-8")
        except ImportError:
            break
        plots[bits] = plot.name
    path.write_text(markdown(results, plots), encoding="utf-8")
    return path


def markdown(results: LargeResults, plots: Mapping[int, str]) -> str:
    """Return the whole report; `plots` are the names of the pictures of the growth, by bits."""
    rows = results.settings["rows"]
    parts = [
        f"# The paper's tables of SIFT1B at {rows:,} rows",
        _about(results),
        *_precision(results),
        *_times(results),
        *_peers(results),
        *_sizes(results),
        *_growth(results, plots),
        *_exactness(results),
        _machine(results),
    ]
    return "\n\n".join(parts) + "\n"


def _about(results: LargeResults) -> str:
    settings = results.settings
    sentences = [
        f"Codes by LSH of a {settings.get('data', MISSING)}, weights by Asym, "
        f"{settings['queries']:,} queries, seed {settings['seed']}.",
        *(
            f"{rate / 1e6:.2f} million codes of {bits} bits a second were drawn and written."
            for bits, rate in results.generation.items()
        ),
        f"The paper searched SIFT1B, {PAPER_ROWS:,} rows, on a {MACHINE}.",
        "Times are means per query in milliseconds.",
        "That of Linear Scan is the time of scanning codes in memory, piece by piece.",
        "Our index is mapped from disk; warm: every query was answered once before;",
        _COLD if any(t.method == "bitweigh cold" for t in results.timings) else _NO_COLD,
        f"a batch has all queries and runs on {settings['threads']} threads.",
        *_disturbance(results),
    ]
    return " ".join(sentences)


def _disturbance(results: LargeResults) -> Iterator[str]:
    """Warn if timed calls on one thread had to share their CPU: speed-ups are ratios of these."""
    shares = [t.cpu_share for t in results.timings if t.cpu_share is not None]
    if shares and min(shares) < QUIET_SHARE:
        yield (
            f"**The machine was busy:** Linear Scan and warm searches had {min(shares):.0%} to "
            f"{min(1.0, max(shares)):.0%} of a CPU, so repeat this on an idle one before relying "
            "on a speed-up."
        )


_COLD = "cold: the cached pages of the index were dropped before each query;"
_NO_COLD = "cold searches were skipped, as cached pages cannot be dropped here;"


def _precision(results: LargeResults) -> Iterator[str]:
    if not results.precision:
        return
    n = results.precision[0].rows
    found = {(r.bits, r.method, r.k): r.precision for r in results.precision}
    lines = []
    for bits in dict.fromkeys(record.bits for record in results.precision):
        for method in ("Baseline", "MIH", "Linear Scan", "bitweigh"):
            theirs = "MIWQ" if method == "bitweigh" else method
            lines.append(
                [
                    str(bits),
                    method,
                    *(percent(found[bits, method, k]) for k in KS),
                    *(_paper(bits, k, theirs).precision or MISSING for k in KS),
                ]
            )
    yield f"## Table 6: precision in percent, on {n:,} whole vectors"
    fewer = "True neighbours need whole vectors, so these rows are fewer. "
    yield (
        (fewer if n < results.settings["rows"] else "")
        + "Precision depends on the number of rows: the 1000 true ones are a larger share of fewer."
    )
    yield _table(["bits", "method", *_by_k(""), *_by_k("paper ")], lines)


def _times(results: LargeResults) -> Iterator[str]:
    n = results.settings["rows"]
    lines = []
    for bits in _lengths(results):
        for method in ("Linear Scan", *OURS):
            ms = [results.ms(bits, n, k, method) for k in KS]
            if ms == [None] * len(KS):
                continue
            figures = []
            for k, value in zip(KS, ms, strict=True):
                scan = results.ms(bits, n, k, "Linear Scan")
                figures += [_number(value), _ratio(scan, value)]
            theirs = {"Linear Scan": method, "bitweigh": "MIWQ"}.get(method)
            for k in KS:
                figure = _paper(bits, k, theirs) if theirs else Printed()
                figures += [figure.ms or MISSING, figure.speed_up or MISSING]
            lines.append([str(bits), OURS.get(method, method), *figures])
    if lines:
        yield f"## Table 7: time of a query in ms, and speed-up over Linear Scan, at {n:,} rows"
        yield "The paper's figures in the lines of bitweigh are those of MIWQ."
        names = [f"{who}{k}-NN{what}" for who in ("", "paper ") for k in KS for what in _MEASURES]
        yield _table(["bits", "method", *names], lines)


def _peers(results: LargeResults) -> Iterator[str]:
    lines = []
    for bits in _lengths(results):
        n = max((t.rows for t in results.timings if t.bits == bits and t.m is not None), default=0)
        for k in KS:
            for method in ("MIH", "MIWQ", "PQTable", "PQTable_max_heap", "bitweigh"):
                timing = results.timing(bits, n, k, method)
                if timing is None:
                    continue
                lines.append(
                    [
                        str(bits),
                        str(k),
                        f"{n:,}",
                        method,
                        MISSING if timing.m is None else str(timing.m),
                        three_digits(timing.ms),
                        _number(timing.buckets),
                        _number(timing.candidates),
                        _paper(bits, k, method).ms or MISSING,
                    ]
                )
    if lines:
        memory = results.settings["peer_memory"] / 2**30
        yield "## Table 8: the paper's methods beside ours, at the most rows that fit"
        yield (
            f"Methods of the paper keep everything in memory: at most {memory:g} GiB here. Their "
            "number of tables m is that of the paper's rule. Candidates of bitweigh are rows that "
            "its kernel looked at."
        )
        names = ["bits", "K", "rows", "method", "m", "ms", "buckets", "candidates"]
        yield _table([*names, "paper ms, at 1e9"], lines)


def _sizes(results: LargeResults) -> Iterator[str]:
    if not results.sizes:
        return
    yield "## Build, memory and the first answer"
    lines = [
        [
            str(record.bits),
            f"{record.rows:,}",
            record.how,
            three_digits(record.build_seconds),
            MISSING if record.resumed else three_digits(record.rows / record.build_seconds / 1e6),
            three_digits(record.disk_bytes / record.rows),
            _gibibytes(record.build_peak_anon),
            _gibibytes(record.query_peak_anon),
            _number(record.first_cold_ms),
            three_digits(record.first_warm_ms),
        ]
        for record in _in_order(results)
    ]
    for bits in _lengths(results):
        seconds, stored = size_exponents(results, bits)
        empty = [""] * 4
        lines.append([str(bits), "exponent", "", _power(seconds), "", _power(stored), *empty])
    yield _table(
        [
            "bits",
            "rows",
            "built",
            "build s",
            "million rows/s",
            "bytes a row on disk (exponent: of all bytes)",
            "build peak RssAnon GiB",
            "query peak RssAnon GiB",
            "load to first answer, cold ms",
            "warm ms",
        ],
        lines,
    )
    names = [name for name in results.sizes[0].parts if any(r.parts[name] for r in results.sizes)]
    yield "Bytes a row by part:"
    yield _table(
        ["bits", "rows", *(name.replace("_", " ") for name in names)],
        [
            [
                str(record.bits),
                f"{record.rows:,}",
                *(f"{record.parts[name] / record.rows:.2f}" for name in names),
            ]
            for record in _in_order(results)
        ],
    )


def _growth(results: LargeResults, plots: Mapping[int, str]) -> Iterator[str]:
    methods = ("Linear Scan", "MIH", "MIWQ", "bitweigh")
    lines = [
        [
            str(record.bits),
            f"{record.rows:,}",
            *(
                _number(results.ms(record.bits, record.rows, k, method))
                for method in methods
                for k in KS
            ),
        ]
        for record in _in_order(results)
    ]
    if not lines:
        return
    yield "## Growth"
    for bits, plot in plots.items():
        yield f"![Time of a query against the number of codes of {bits} bits]({plot})"
    for bits in _lengths(results):
        powers = exponents(results, bits)
        lines.append(
            [
                str(bits),
                "exponent",
                *(_power(powers.get((method, k))) for method in methods for k in KS),
            ]
        )
    yield _table(
        ["bits", "rows", *(f"{method} {k}-NN ms" for method in methods for k in KS)], lines
    )


def _exactness(results: LargeResults) -> Iterator[str]:
    if not results.exactness:
        return
    yield "## Exactness"
    yield "\n".join(
        f"- {record.bits} bits, {record.rows:,} rows, {record.k}-NN: ids and distances of "
        f"{record.scanned - record.wrong:,} of {record.scanned:,} queries are those of a scan of "
        f"all codes; {record.defined} of them were also compared with the definition."
        for record in results.exactness
    )


def _machine(results: LargeResults) -> str:
    return "Machine: " + "; ".join(f"{name} {text}" for name, text in results.machine.items()) + "."


_MEASURES = (" ms", " speed-up")


def _by_k(before: str) -> list[str]:
    return [f"{before}{k}-NN" for k in KS]


def _lengths(results: LargeResults) -> list[int]:
    return list(dict.fromkeys(record.bits for record in results.sizes))


def _in_order(results: LargeResults) -> list[SizeRecord]:
    return sorted(results.sizes, key=lambda record: (-record.bits, record.rows))


def _paper(bits: int, k: int, method: str) -> Printed:
    return printed(("SIFT1B", "LSH", "Asym", bits, k, method))


def _number(value: float | None) -> str:
    return MISSING if value is None else three_digits(value)


def _ratio(slow: float | None, fast: float | None) -> str:
    return MISSING if slow is None or fast is None else three_digits(slow / fast)


def _power(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _gibibytes(value: int | None) -> str:
    return MISSING if value is None else f"{value / 2**30:.2f}"


def _table(names: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    head = [names, ["---"] * len(names)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (*head, *lines))
