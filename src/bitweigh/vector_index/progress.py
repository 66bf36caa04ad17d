"""A progress bar for those who ask for one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

__all__ = ["bar"]


@contextlib.contextmanager
def bar(shown: bool, doing: str, total: int) -> Iterator[Callable[[int], None]]:
    """What moves the bar on by so many; it does nothing if none is to be shown."""
    if not shown:
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        raise ImportError(
            "progress=True needs rich, which is not installed: pip install 'bitweigh[cli]'"
        ) from None
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(doing, total=total)
        yield lambda count: progress.advance(task, count)
