"""Semantic search over real documents, offline: `bitweigh demo`, or ``python -m bitweigh.demo``."""
