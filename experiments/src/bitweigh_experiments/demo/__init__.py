"""Semantic search over real documents, offline: `bitweigh demo`."""
