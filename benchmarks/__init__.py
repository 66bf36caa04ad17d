"""Benchmarks of bitweigh against other ways to find the same neighbours.

``python -m benchmarks`` from the root of the repository; docs/benchmarks.md explains the method.
This file limits BLAS and OpenMP to one thread before NumPy or FAISS is imported.
"""

from __future__ import annotations

import os

for _name in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
):
    os.environ[_name] = "1"
