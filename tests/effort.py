"""How long tests run: a few minutes for `make test`, without limit for `make test-all`."""

from __future__ import annotations

import os

LONG = os.environ.get("BITWEIGH_LONG") == "1"


def examples(count: int) -> int:
    """Return the number of examples: `count` in long runs, else a third, enough for all paths."""
    return count if LONG else max(1, count // 3)
