"""Measurements of the engine by its own clock, beyond the comparison with peers by wall clock.

``python -m benchmarks.engine`` from the root of the repository; docs/benchmarks.md has the results.
"""
