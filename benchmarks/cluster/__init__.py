"""Proofs and measurements of shards and clusters; `python -m benchmarks.cluster` runs one."""
