"""The methods of the paper, as it describes them, to compare with.

Weng and Zhu, "Efficient Querying from Weighted Binary Codes", AAAI 2020.
"""

from bitweigh.paper.methods import linear_scan

__all__ = ["linear_scan"]
