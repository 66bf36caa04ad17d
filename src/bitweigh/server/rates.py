"""Rates: how many requests a second a key may make, by a token bucket each."""

from __future__ import annotations

import time

from bitweigh.server.problems import Problem

__all__ = ["Rates"]


class Rates:
    """Buckets that fill with `rate` tokens a second, and hold those of one second, at least 1."""

    def __init__(self, rate: float) -> None:
        """Begin with full buckets; 0 for no limit."""
        self._rate = rate
        self._most = max(1.0, rate)
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, name: str) -> None:
        """Take a token; Problem 429 if there is none."""
        if self._rate <= 0:
            return
        now = time.monotonic()
        tokens, since = self._buckets.get(name, (self._most, now))
        tokens = min(self._most, tokens + (now - since) * self._rate)
        if tokens < 1:
            self._buckets[name] = (tokens, now)
            wait = (1 - tokens) / self._rate
            raise Problem(
                429,
                "rate",
                f"the key may make {self._rate:g} requests a second",
                headers={"retry-after": str(max(1, round(wait)))},
            )
        self._buckets[name] = (tokens - 1, now)
