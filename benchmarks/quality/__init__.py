"""The quality of codes against their bytes and their time: ``python -m benchmarks.quality``.

`sets` has the vectors, `ours` and `peers` what is built from them, `measuring` the measurement,
`weighing` the comparison of hashers and weighers, and `page` the tables and plots.
"""
