"""The compiled methods of the paper. Private: use bitweigh.paper."""

from typing import Annotated

import numpy
from numpy.typing import NDArray


def linear_scan(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], distances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], bitorder: str, single_precision: bool) -> None:
    """
    The paper's Linear Scan: write the k nearest into distances (nq, k) and their row numbers
    into ids (nq, k).
    """

def substrings_by_rule(n_bits: int, n: int) -> int:
    """The paper's number of tables for n codes."""

class SingleIndex:
    """The paper's Alg. 1."""

    def __init__(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_bits: int, bitorder: str) -> None: ...

    def search(self, costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], distances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

class MultiIndex:
    """The paper's Alg. 2."""

    def __init__(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_bits: int, bitorder: str, m: int) -> None: ...

    def search(self, costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], distances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], descending: bool) -> None: ...

def hamming_ranking(codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], distances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], bitorder: str) -> None:
    """The paper's Baseline."""

class MultiIndexHashing:
    """MIH, culled by weighted distance."""

    def __init__(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_bits: int, bitorder: str, m: int) -> None: ...

    def search(self, costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], distances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], culled: str) -> None: ...

def pq_tables_by_rule(n_bits: int, n: int) -> int:
    """PQTable's number of tables for n codes."""

class PqTable:
    """PQTable over weighted binary codes."""

    def __init__(self, codes: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_bits: int, bitorder: str, m: int) -> None: ...

    def search(self, costs: Annotated[NDArray[numpy.float64], dict(shape=(None, None, None), order='C', device='cpu', writable=False)], distances: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], ids: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], counts: Annotated[NDArray[numpy.int64], dict(shape=(None, None), order='C', device='cpu')], max_heap: bool) -> None: ...

counter_names: tuple[str, ...] = ...
