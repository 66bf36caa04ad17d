"""The paper's Tables 6 to 8 at any number of rows: codes and index on disk, memory bounded."""

from bitweigh_experiments.reproduce.large.plan import LargePlan
from bitweigh_experiments.reproduce.large.records import LargeResults, is_large
from bitweigh_experiments.reproduce.large.run import run_large

__all__ = ["LargePlan", "LargeResults", "is_large", "run_large"]
