"""The experiments of the paper, repeated: what to measure, measuring it, tables, claims, report.

`bitweigh paper reproduce` runs it; `Results` is what it writes as JSON.
"""

from bitweigh_experiments.reproduce.results import Results
from bitweigh_experiments.reproduce.run import Plan, reproduce

__all__ = ["Plan", "Results", "reproduce"]
