"""How long tests run: `make test` takes a few minutes, `make test-all` as long as it takes."""

from __future__ import annotations

import os

LONG = os.environ.get("BITWEIGH_LONG") == "1"


def examples(count: int) -> int:
    """Examples to run: `count` in long runs, else a third, which reaches the same paths."""
    return count if LONG else max(1, count // 3)
