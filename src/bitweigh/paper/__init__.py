"""The methods of the paper, as it describes them, for comparison.

Weng and Zhu, "Efficient Querying from Weighted Binary Codes", AAAI 2020.
"""

from bitweigh.paper._mih import MIH
from bitweigh.paper._miwq import MIWQ, SingleIndex
from bitweigh.paper._pq_table import PQTable
from bitweigh.paper._scan import hamming_ranking, linear_scan
from bitweigh.paper._tables import PaperResult, ProbeStats

__all__ = [
    "MIH",
    "MIWQ",
    "PQTable",
    "PaperResult",
    "ProbeStats",
    "SingleIndex",
    "hamming_ranking",
    "linear_scan",
]
