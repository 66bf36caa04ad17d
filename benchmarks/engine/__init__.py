"""The engine by its own clock: what the comparison with peers by wall clock does not tell.

``python -m benchmarks.engine`` from the root of the repository; docs/benchmarks.md has the results.
"""
