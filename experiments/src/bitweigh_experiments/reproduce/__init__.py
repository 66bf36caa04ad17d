"""The paper's experiments, repeated: plan, measurement, tables, claims and report.

`bitweigh paper reproduce` runs them and writes `Results` as JSON.
"""

from bitweigh_experiments.reproduce.results import Results
from bitweigh_experiments.reproduce.run import Plan, reproduce

__all__ = ["Plan", "Results", "reproduce"]
