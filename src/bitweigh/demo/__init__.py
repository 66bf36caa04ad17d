"""A tour on real data in under a minute: ``python -m bitweigh.demo``."""
