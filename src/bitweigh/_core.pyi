"""The compiled engine of bitweigh. Private: use bitweigh.Index."""

from collections.abc import Sequence
from typing import Annotated

import numpy
from numpy.typing import NDArray


class Tuning:
    """What tests change so that small inputs reach every path."""

    def __init__(self) -> None: ...

    @property
    def warm_up_rows(self) -> int:
        """Rows sampled for the first bound."""

    @warm_up_rows.setter
    def warm_up_rows(self, arg: int, /) -> None: ...

    @property
    def warm_up_per_k(self) -> int:
        """And for each neighbour wanted."""

    @warm_up_per_k.setter
    def warm_up_per_k(self, arg: int, /) -> None: ...

    @property
    def narrow_max_bits(self) -> int:
        """Longer codes use 16-bit sums."""

    @narrow_max_bits.setter
    def narrow_max_bits(self, arg: int, /) -> None: ...

    @property
    def narrow_max_scan_bits(self) -> int:
        """And in a scan."""

    @narrow_max_scan_bits.setter
    def narrow_max_scan_bits(self, arg: int, /) -> None: ...

    @property
    def first_round_cost(self) -> float:
        """Of probing, in nanoseconds."""

    @first_round_cost.setter
    def first_round_cost(self, arg: float, /) -> None: ...

    @property
    def least_scan_factor(self) -> float:
        """Where bands are used at all."""

    @least_scan_factor.setter
    def least_scan_factor(self, arg: float, /) -> None: ...

    @property
    def least_scan_cost_per_k(self) -> float:
        """And per neighbour."""

    @least_scan_cost_per_k.setter
    def least_scan_cost_per_k(self, arg: float, /) -> None: ...

def kernel_names() -> list[str]:
    """Kernels that this machine can run, fastest first."""

class Band:
    """The rows of a segment in ascending key; immutable."""

    def __init__(self, bits: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> None: ...

class CountedIds:
    """Ids that are not stored: each one more than the last."""

    def __init__(self, first: int, rows: int) -> None: ...

class Segment:
    """Rows in blocks with their ids; immutable."""

    def __init__(self, blocks: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | CountedIds, by_id: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_bits: int, bands: Sequence[Band]) -> None: ...

class DeniedRows:
    """Rows that a search may not return; immutable."""

    def __init__(self, rows: int, masks: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """Of so many rows; masks have a bit for each."""

    def write_masks(self, masks: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """Write a bit for each row."""

    @property
    def count(self) -> int: ...

    @property
    def nbytes(self) -> int: ...

class Allowed:
    """Which rows of a segment a filter allows."""

    def __init__(self, denied: DeniedRows, blocks: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> None: ...

class SegmentList:
    """Segments in the order of a search; immutable."""

    def __init__(self, segments: Sequence[Segment], removed: Sequence[DeniedRows | None]) -> None: ...

def locate(segments: SegmentList, wanted: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], numbers: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu')], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """
    Write the number of the segment and the row of each wanted id; -1 where it is in none.
    """

def remove_ids(segments: SegmentList, wanted: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], may_miss: bool) -> list[tuple[int, DeniedRows]] | None:
    """
    The numbers of the segments that have these ids, each with its removed rows afterwards;
    None where an id is in none, unless that may be.
    """

def unpack_rows(segment: Segment, rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], stop: Stop | None = None) -> None:
    """Write the codes of the given rows into codes (len(rows), n_bytes)."""

class Stop:
    """Ends what it was given to, on any thread."""

    def __init__(self) -> None: ...

    def set(self) -> None: ...

def empty_blocks(nbytes: int) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
    """Memory for blocks, aligned as they like it."""

def pack_blocks(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], stop: Stop | None = None) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
    """Codes (n, n_bytes) as blocks of 32 rows."""

def pack_in_order(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], stop: Stop | None = None) -> Annotated[NDArray[numpy.uint8], dict(shape=(None,))]:
    """
    The given rows of codes (n, n_bytes), in their order, as blocks of 32 rows.
    """

def take_rows(values: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], taken: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu')], stop: Stop | None = None) -> None:
    """Write the given rows of values (n, n_bytes) into taken."""

def sort_band(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], bits: Annotated[NDArray[numpy.uint16], dict(shape=(None,), order='C', device='cpu', writable=False)], bitorder: str, starts: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], stop: Stop | None = None) -> None:
    """
    Write the rows (n,) in ascending key and where each key starts (2^len(bits) + 1,).
    """

def sort_ids(ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | CountedIds, by_id: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], stop: Stop | None = None) -> None:
    """Write the rows in ascending id; those of equal ids in ascending order."""

def first_stray_row(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_bits: int, bitorder: str) -> int:
    """First row with an unused bit set, or the number of rows."""

def widen(values: Annotated[NDArray[numpy.float32], dict(order='C', device='cpu', writable=False)], widened: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')]) -> None:
    """
    Write each float32 into widened as float64, whatever the floating-point mode.
    """

def search(segments: SegmentList, allowed: Sequence[Allowed] | None, costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], single: bool, bitorder: str, method: str, kernel: str, threads: int, cap_threads: bool, tuning: Tuning, k: int, distances: Annotated[NDArray[numpy.float64], dict(order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], counters: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')] | None) -> None:
    """
    Write the k nearest into distances (nq, k) and ids (nq, k), and what was done into
    counters (nq, len(counter_names)).
    """

def range_search(segments: SegmentList, allowed: Sequence[Allowed] | None, costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], single: bool, bitorder: str, method: str, kernel: str, threads: int, cap_threads: bool, tuning: Tuning, radii: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], limit: int, lims: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')], counters: Annotated[NDArray[numpy.int64], dict(order='C', device='cpu')] | None) -> tuple[Annotated[NDArray[numpy.float64], dict(shape=(None,))], Annotated[NDArray[numpy.int64], dict(shape=(None,))]]:
    """
    Distances and ids of all rows within each radius; where those of each query begin goes
    into lims (nq + 1,).
    """

class TooManyRowsError(ValueError):
    pass

counter_names: tuple[str, ...] = ...

max_segment_rows: int = 4294967232

max_band_bits: int = 24

version: str
