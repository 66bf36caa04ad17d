"""Settings: limits of requests, and how a server keeps its data."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Limits", "Settings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most that one request, one key or all requests together may ask for."""

    body_bytes: int = 32 << 20
    import_bytes: int = 4 << 30
    k: int = 1_000
    rerank_from: int = 10_000
    """Candidates by code that a search may rank again by vectors."""
    queries: int = 1_024
    range_hits: int = 10_000
    page: int = 1_000
    filter_conditions: int = 32
    filter_depth: int = 8
    timeout_ms: int = 1_000
    """Of a search that does not say what it wants."""
    max_timeout_ms: int = 30_000
    waiting: int = 1_024
    """Searches, and likewise writes, that may wait at the same time."""
    connections: int = 4_096
    rate: float = 0.0
    """Requests a second of one key; 0 for no limit."""
    slow_seconds: float = 10.0
    """Within which the headers, and then the body, must have arrived."""
    key_length: int = 512
    payload_bytes: int = 1 << 20
    collections: int = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How a server runs; `bitweigh serve` makes them from its options."""

    limits: Limits = field(default_factory=Limits)
    read_only: bool = False
    auth: bool = True
    """Whether keys are asked for at all."""
    open_without_keys: bool = True
    """Whether everybody is let in while there are no keys; only for addresses of this machine."""
    hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    """Names that requests may have in their Host header, without ports; ("*",) for any."""
    checkpoint_seconds: float = 30.0
    checkpoint_changes: int = 100_000
    build_seconds: float = 10.0
    """How often the server looks for segments that bands might speed up."""
    build_rows: int = 10_000
    """How many must have changed before it looks."""
    compact_rows: int = 10_000
    """Removed rows up to which an index is left as it is, however small it is."""
    search_threads: int | None = None
    """Threads of one search; by default as many as the work is worth."""
    drain_seconds: float = 10.0
