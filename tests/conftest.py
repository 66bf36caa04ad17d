"""Settings for all tests: the number of BLAS threads, Hypothesis profiles; shared fixtures."""

from __future__ import annotations

import os

# Set before NumPy is imported. Test processes run in parallel: BLAS threads would wait for each
# other, and the small products here are faster without them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from hypothesis import HealthCheck, settings
from page_browser import browser, page, watched

__all__ = ["browser", "page", "watched"]

settings.register_profile(
    "bitweigh",
    deadline=None,
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("bitweigh")
