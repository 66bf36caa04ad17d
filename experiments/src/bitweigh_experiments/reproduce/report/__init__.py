"""The report of a reproduction: a page with the claims, the charts and the tables."""

from bitweigh_experiments.reproduce.report.page import write_report

__all__ = ["write_report"]
