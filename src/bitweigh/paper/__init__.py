"""The methods of the paper, as it describes them, to compare with.

Weng and Zhu, "Efficient Querying from Weighted Binary Codes", AAAI 2020.
"""

from bitweigh.paper.scan import linear_scan
from bitweigh.paper.miwq import MIWQ, ProbeStats, SingleIndex

__all__ = ["MIWQ", "ProbeStats", "SingleIndex", "linear_scan"]
