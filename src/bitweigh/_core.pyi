"""The compiled engine of bitweigh. Private: use bitweigh.Index."""

from collections.abc import Sequence
import enum
from typing import Annotated

import numpy
from numpy.typing import NDArray


class Tuning:
    """Settings that tests change to reach every path."""

    def __init__(self) -> None: ...

    @property
    def warm_up_rows(self) -> int:
        """Minimum number of rows sampled for the first bound."""

    @warm_up_rows.setter
    def warm_up_rows(self, arg: int, /) -> None: ...

    @property
    def warm_up_per_k(self) -> int:
        """Minimum number of rows sampled per neighbour."""

    @warm_up_per_k.setter
    def warm_up_per_k(self, arg: int, /) -> None: ...

    @property
    def narrow_max_bits(self) -> int:
        """Longest codes that use 8-bit sums in bands."""

    @narrow_max_bits.setter
    def narrow_max_bits(self, arg: int, /) -> None: ...

    @property
    def narrow_max_scan_bits(self) -> int:
        """Longest codes that use 8-bit sums in a scan."""

    @narrow_max_scan_bits.setter
    def narrow_max_scan_bits(self, arg: int, /) -> None: ...

    @property
    def first_round_ns(self) -> float:
        """Estimated time that the first round of probing may take."""

    @first_round_ns.setter
    def first_round_ns(self, arg: float, /) -> None: ...

    @property
    def min_scan_factor(self) -> float:
        """Minimum ratio of scan time to set-up time for probing."""

    @min_scan_factor.setter
    def min_scan_factor(self, arg: float, /) -> None: ...

    @property
    def min_scan_ns_per_k(self) -> float:
        """Minimum scan time per neighbour for probing."""

    @min_scan_ns_per_k.setter
    def min_scan_ns_per_k(self, arg: float, /) -> None: ...

    @property
    def scan_factor(self) -> float:
        """Factor by which a scan is assumed to have more blocks."""

    @scan_factor.setter
    def scan_factor(self, arg: float, /) -> None: ...

class Deadline:
    """When a call must have ended; immutable."""

    def __init__(self, timeout: float) -> None:
        """Begin to count `timeout` seconds, by a steady clock."""

    def check(self) -> None:
        """Raise DeadlineError if the time is over."""

    @property
    def exists(self) -> bool:
        """Whether the time is limited at all."""

class Method(enum.Enum):
    """How a search uses bands; never changes the answer."""

    auto = 0

    scan = 1

    probe = 2

class SearchOptions:
    """The options of a single search."""

    def __init__(self) -> None: ...

    @property
    def method(self) -> Method:
        """What to do with segments that have bands."""

    @method.setter
    def method(self, arg: Method, /) -> None: ...

    @property
    def threads(self) -> int:
        """Maximum number of threads, at least 1."""

    @threads.setter
    def threads(self, arg: int, /) -> None: ...

    @property
    def cap_threads(self) -> bool:
        """Whether to use no more threads than the work is worth."""

    @cap_threads.setter
    def cap_threads(self, arg: bool, /) -> None: ...

    @property
    def limit(self) -> int:
        """
        Maximum number of rows within a query's radius; more raise TooManyRowsError.
        """

    @limit.setter
    def limit(self, arg: int, /) -> None: ...

    @property
    def deadline(self) -> Deadline:
        """When the search must have ended; DeadlineError if it has not."""

    @deadline.setter
    def deadline(self, arg: Deadline, /) -> None: ...

class Engine:
    """The settings shared by all searches of an index."""

    def __init__(self, n_bits: int, bitorder: str, kernel: str) -> None: ...

    @property
    def kernel(self) -> str: ...

    @kernel.setter
    def kernel(self, arg: str, /) -> None: ...

    @property
    def tuning(self) -> Tuning: ...

    @tuning.setter
    def tuning(self, arg: Tuning, /) -> None: ...

    @property
    def queries(self) -> int:
        """Queries that were searched for."""

    @property
    def queries_by_bands(self) -> int:
        """Queries that were answered by bands, without a scan of what has bands."""

    def search(self, segments: SegmentSet, costs: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], k: int, options: SearchOptions, distances: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], counters: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')] | None = None, pages: PageCounter | None = None) -> None:
        """
        Write the k nearest into distances (nq, k) and ids (nq, k), and the work done into
        counters (nq, len(counter_names)). `pages` counts for searches on one thread.
        """

    def range_search(self, segments: SegmentSet, costs: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu', writable=False)], radii: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], options: SearchOptions, lims: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], counters: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')] | None = None) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
        """
        Return the distances and ids of all rows within each radius, and write where those
        of each query begin into lims (nq + 1,).
        """

class PageCounter:
    """Counts the pages of 4 KiB that a search reads."""

    def __init__(self) -> None: ...

    @property
    def pages(self) -> int:
        """Pages read, each counted once."""

    @property
    def missing(self) -> int:
        """Pages of files among them that were not in memory before."""

class TooManyRowsError(ValueError):
    pass

def kernel_names() -> list[str]:
    """Return the kernels that this machine can run, fastest first."""

counter_names: tuple[str, ...] = ...

class Band:
    """The rows of a segment in ascending key; immutable."""

    def __init__(self, bits: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> None: ...

class CountedIds:
    """Ids that are not stored but counted up from the first."""

    def __init__(self, first: int, rows: int) -> None: ...

class Segment:
    """Rows in blocks with their ids; immutable."""

    def __init__(self, blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | CountedIds, by_id: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_bits: int, bands: Sequence[Band], lean_order: str | None = None, is_mapped: bool = False) -> None:
        """
        With lean_order, the order of the bits in codes, blocks hold rests of codes, the first are
        those of the first band, and ids are sorted on first use. If is_mapped, the arrays are those
        of mapped files, which may not be in memory.
        """

    @property
    def id_lookup_nbytes(self) -> int:
        """Bytes of the rows in ascending id, 0 before they are sorted."""

class RowMask:
    """Which rows of a segment a search may return; immutable."""

    def __init__(self, masks: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: int) -> None:
        """Deny each row whose bit is set; every mask has 32 bits."""

    def write_masks(self, masks: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], first_block: int = 0) -> None:
        """
        Write the masks of blocks from first_block on, with a set bit for each denied row.
        """

    @property
    def denied_rows(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

class SegmentSet:
    """Segments in the order of a search; immutable."""

    def __init__(self, segments: Sequence[Segment], removed: Sequence[RowMask | None]) -> None: ...

    def locate(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        Write the segment number and the row of each id; -1 and 0 if no segment has it.
        """

    def remove(self, ids: NDArray[numpy.int64], ignore_missing: bool) -> list[tuple[int, RowMask]]:
        """
        Return the number and the new mask of each segment that has any of these ids.
        Raises KeyError for the first id that no segment has, unless ignore_missing is true.
        """

    def filtered_by_ids(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], deny: bool, deadline: Deadline | None = None) -> SegmentSet:
        """Return the set with only these ids allowed, or with them denied."""

    def filtered_by_flags(self, flags: Annotated[NDArray[numpy.bool_], dict(shape=(None,), order='C', device='cpu', writable=False)], deny: bool, deadline: Deadline | None = None) -> SegmentSet:
        """
        Return the set with only those ids i allowed that have flags[i], or with them denied.
        """

    @property
    def filter_nbytes(self) -> int: ...

def unpack_rows(segment: Segment, rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], stop: Stop | None = None) -> None:
    """Write the codes of the given rows into codes (len(rows), n_bytes)."""

class Stop:
    """A flag that ends the calls it was passed to, on any thread."""

    def __init__(self) -> None: ...

    def set(self) -> None: ...

def empty_blocks(nbytes: int) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
    """Return uninitialised memory for blocks, aligned for fast scans."""

def pack_blocks(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], stop: Stop | None = None) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
    """Pack codes (n, n_bytes) into blocks of 32 rows."""

def pack_in_order(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], stop: Stop | None = None) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
    """
    Pack the given rows of codes (n, n_bytes), in the given order, into blocks of 32 rows.
    """

def take_rows(values: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], taken: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], stop: Stop | None = None) -> None:
    """
    Copy the given rows of values (n, n_bytes) into taken (len(rows), n_bytes).
    """

def sort_band(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], bits: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], bitorder: str, starts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], stop: Stop | None = None) -> None:
    """
    Write the rows in ascending key into rows (n,), and the position of the first row of
    each key into starts (2^len(bits) + 1,).
    """

def sort_ids(ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | CountedIds, by_id: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], stop: Stop | None = None) -> None:
    """
    Write the rows in ascending id into by_id (n,), rows of equal ids in ascending order.
    """

def first_stray_row(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_bits: int, bitorder: str) -> int:
    """
    Return the first row with an unused bit set, or the number of rows if there is none.
    """

class LeanBand:
    """How keys and rests of one band are read from codes."""

    def __init__(self, bits: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], n_bits: int, bitorder: str) -> None: ...

    @property
    def n_rest_bytes(self) -> int: ...

    def sort(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], numbers: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], spare_codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], spare_numbers: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], stop: Stop | None = None) -> bool:
        """
        Sort rows by key, stably: codes (n, n_bytes) with numbers (n, 4) or (n, 8). Both
        pairs of arrays are used; return whether the sorted rows are in the spare ones.
        """

    def starts(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], first_key: int, first_position: int, starts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], stop: Stop | None = None) -> None:
        """
        Write the position of the first row of each key, from first_key on, of sorted codes.
        """

    def count_below(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], key: int) -> int:
        """Return how many of the sorted codes have a smaller key."""

    def pack_rests(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], offset: int, blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], stop: Stop | None = None) -> None:
        """
        Pack the rests of codes into blocks, the first at row `offset` of the first block.
        """

def mark_ids(ids: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], marks: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], stop: Stop | None = None) -> int:
    """
    Set the bit of each id; return the position of the first that was set, or len(ids).
    """

def rank_candidates(vectors: Sequence[object], queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu', writable=False)], metric: str, threads: int, cap_threads: bool, distances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], nearest: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], deadline: Deadline | None = None) -> None:
    """
    Write the nearest of each query's candidates into distances (nq, k) and nearest (nq, k).
    Candidates are rows (nq, m) of the arrays in vectors, -1 for none, and their ids.
    """

def vector_distances(vectors: Sequence[object], queries: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], metric: str, threads: int, cap_threads: bool, distances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], deadline: Deadline | None = None) -> None:
    """Write the distance of each query to each row into distances (nq, n)."""

def find_sorted(ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], wanted: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], places: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], deadline: Deadline | None = None) -> None:
    """
    Write the position of each wanted id in ids, which must be ascending, into places (n,);
    -1 if it is not there.
    """

def sort_found(distances: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], deadline: Deadline | None = None) -> None:
    """
    Sort elements [ends[q], ends[q + 1]) of both arrays (n,) by (distance, id), for each q.
    """

def widen(values: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], widened: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
    """
    Write each value into widened as float64, exactly in any floating-point mode.
    """

max_segment_rows: int = 4294967232

max_band_bits: int = 28

max_lean_bits: int = 64

version: str
