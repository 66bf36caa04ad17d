"""From batches of codes to the folder of an index: `Index.from_batches` without its docstring.

The layout of the rows is chosen before the build begins, and recorded with the options, so that a
resumed build keeps it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from bitweigh import _system
from bitweigh._checks import as_bitorder, as_integer, as_n_bits
from bitweigh._disk.folders import locked_folder
from bitweigh._disk.reading import resolved
from bitweigh._index.bands import BandOptions
from bitweigh._index.row_layout import LEAN_ROWS, LayoutChoice, choose_row_layout
from bitweigh._storage.folder import refuse_others
from bitweigh._storage.formats import INDEX
from bitweigh._storage.manifest import MANIFEST
from bitweigh._streaming.build import build_lean
from bitweigh._streaming.files import naming_full_disk
from bitweigh._streaming.journal import JOURNAL, Journal
from bitweigh._streaming.plain import PlainFiles, build_plain
from bitweigh._streaming.plan import MIN_BUILD_MEMORY
from bitweigh._streaming.publish import is_published, publish_lean, publish_plain
from bitweigh._streaming.request import check_resumable, compare
from bitweigh._streaming.results import LeanFiles
from bitweigh._streaming.sources import Batch, IteratorSource, RowSource, Source
from bitweigh._streaming.spool import spool
from bitweigh.hashers import Hasher
from bitweigh.typing import BitOrder, RowLayout

__all__ = ["BuildRequest", "Built", "build_index", "code_format", "is_built", "work_folder"]


class BuildRequest(NamedTuple):
    """The arguments that determine an index."""

    n_bits: int
    bitorder: BitOrder
    options: BandOptions
    layout: RowLayout | None = None
    """The layout asked for; None to choose it."""

    def facts(self) -> dict[str, Any]:
        """The arguments as JSON."""
        options = self.options
        return {
            "n_bits": self.n_bits,
            "bitorder": self.bitorder,
            "bands": options.bands,
            "band_bits": options.band_bits,
            "memory_limit": options.memory_limit,
            "layout": self.layout,
        }


class Built(NamedTuple):
    """What `build_index` did."""

    choice: LayoutChoice
    resumed: bool
    """Whether it continued a build that was ended."""


def build_index(
    source: Source,
    path: str | os.PathLike[str],
    request: BuildRequest,
    *,
    build_memory: int,
    threads: int | None,
    progress: bool | None,
    overwrite: bool = False,
) -> Built:
    """Build an index in a folder.

    Raises FileExistsError if there is something already, unless `overwrite` and that is an index.
    """
    build_memory = as_integer(build_memory, "build_memory", MIN_BUILD_MEMORY, 2**62)
    workers = _system.default_threads() if threads is None else threads
    workers = as_integer(workers, "threads", 1, _system.MAX_THREADS)
    folder = resolved(path)
    work = work_folder(folder)
    _refuse_existing(folder, overwrite)
    # Another build of the same index waits here, and then finds it finished.
    with locked_folder(work):
        _refuse_existing(folder, overwrite)
        recorded = _recorded(work, source, request)
        with _removed_if_useless(work, source, recorded is not None):
            source, choice = _chosen(source, work, request, recorded)
            built, publish = _built(source, work, request, choice, build_memory, workers, progress)
            with locked_folder(folder), naming_full_disk(folder, lambda: "all of it is built"):
                # The build may have been ended after that, before its own files were deleted.
                if not is_published(built, folder):
                    # Somebody else may have saved an index there meanwhile.
                    if not overwrite and os.path.lexists(folder / MANIFEST):
                        raise _not_empty(folder)
                    publish(folder, request.options)
        _remove_work(work)
    return Built(choice, recorded is not None)


def _built(
    source: Source,
    work: Path,
    request: BuildRequest,
    choice: LayoutChoice,
    build_memory: int,
    threads: int,
    progress: bool | None,
) -> tuple[LeanFiles | PlainFiles, Callable[[Path, BandOptions], None]]:
    """Build the files of an index; returns them and the function that places them in its folder."""
    n_bits, bitorder, options, _ = request
    facts = {"asked": request.facts(), "choice": choice._asdict()}
    if choice.layout == "lean":
        lean = build_lean(
            source,
            work,
            n_bits,
            bitorder=bitorder,
            bands=choice.lean_bands,
            band_bits=options.band_bits,
            build_memory=build_memory,
            threads=threads,
            progress=progress,
            facts=facts,
        )
        return lean, partial(publish_lean, lean, choice.reason)
    assert isinstance(source, RowSource)
    plain = build_plain(
        source,
        work,
        n_bits,
        bitorder,
        options,
        reason=choice.reason,
        build_memory=build_memory,
        threads=threads,
        progress=progress,
        facts=facts,
    )
    return plain, partial(publish_plain, plain)


def work_folder(folder: Path) -> Path:
    """Where a build keeps its files until it is finished: beside the index."""
    return folder.with_name(f"{folder.name}.building")


def is_built(folder: Path) -> bool:
    """Whether a build of the index at `folder` was ended while it published its files, or later."""
    return "result" in Journal(work_folder(folder))


def _remove_work(work: Path) -> None:
    """Delete the files of a published build, the journal last: until then it can be continued."""
    for path in work.iterdir():
        if path.name != JOURNAL:
            path.unlink()
    shutil.rmtree(work)


def code_format(
    source: Source, hasher: Hasher | None, n_bits: int | None, bitorder: BitOrder | None
) -> tuple[int, BitOrder]:
    """Bits of a code and their order: those given, else the hasher's, else 8 to a byte and "big".

    Raises ValueError if a hasher makes other codes.
    """
    if hasher is not None:
        made = {"n_bits": hasher.n_bits_, "bitorder": hasher.bitorder}
        for (name, value), asked in zip(made.items(), (n_bits, bitorder), strict=True):
            if asked is not None and asked != value:
                raise ValueError(f"{name} must be {value!r}, as the hasher has it, got {asked!r}")
        return hasher.n_bits_, hasher.bitorder
    bits = _bits_of_first_row(source) if n_bits is None else as_n_bits(n_bits)
    return bits, as_bitorder("big" if bitorder is None else bitorder)


def _bits_of_first_row(source: Source) -> int:
    if isinstance(source, IteratorSource):
        batches: Iterable[Batch] = source.begin(1)
    else:
        batches = source.read(0, min(1, source.rows))
    for codes, _ in batches:
        if codes.ndim == 2 and codes.shape[1]:
            return 8 * int(codes.shape[1])
    raise ValueError("the source has no rows: give n_bits")


def _refuse_existing(folder: Path, overwrite: bool) -> None:
    if overwrite and folder.exists():
        refuse_others(folder, INDEX)
    elif folder.exists() and any(folder.iterdir()) and not is_built(folder):
        raise _not_empty(folder)


def _not_empty(folder: Path) -> FileExistsError:
    return FileExistsError(f"{folder} must not exist or be empty: an index is built there")


def _recorded(work: Path, source: Source, request: BuildRequest) -> LayoutChoice | None:
    """The choice of the build to resume, if there is one; raises ValueError if it is another."""
    if not work.exists():
        return None
    journal = Journal(work)
    if "choice" not in journal:
        return None
    check_resumable(source, work)
    compare(journal.get("asked"), request.facts(), work)
    return LayoutChoice(**journal.get("choice"))


def _chosen(
    source: Source, work: Path, request: BuildRequest, recorded: LayoutChoice | None
) -> tuple[Source, LayoutChoice]:
    """The layout, and the source to build from.

    The rows of an iterator are counted by copying them to disk. If there are enough for lean rows
    and nothing else decides, the rest need not be counted.
    """
    n_bits, bitorder, options, asked = request
    if recorded is not None:
        return source, recorded
    if isinstance(source, RowSource):
        return source, choose_row_layout(source.rows, n_bits, options, asked)
    many = None
    if options.memory_limit is None:
        many = choose_row_layout(None, n_bits, options, asked)
    enough = LEAN_ROWS if many is not None and many.layout == "lean" else None
    with naming_full_disk(work, lambda: "nothing is finished"):
        copied, is_all = spool(source, work, n_bits, bitorder, enough)
    if is_all or many is None:
        return copied, choose_row_layout(copied.rows, n_bits, options, asked)
    return IteratorSource(chain(copied.read(0, copied.rows), source.batches())), many


@contextmanager
def _removed_if_useless(work: Path, source: Source, resumed: bool) -> Iterator[None]:
    """Remove the folder of a build that failed if no later call could continue it.

    That is one whose source cannot be resumed, and one of wrong rows: they have to be changed, and
    a build from changed rows begins again.
    """
    try:
        yield
    except BaseException as error:
        if not resumed and (not source.resumable or isinstance(error, TypeError | ValueError)):
            shutil.rmtree(work, ignore_errors=True)
        raise
