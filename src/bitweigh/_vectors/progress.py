"""A progress bar for those who ask for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["bar"]


class bar:  # noqa: N801 it is used like a function
    """What moves the bar on by so many; it does nothing if none is to be shown.

    Nothing runs between `__enter__` and the block, so that Ctrl-C cannot leave a bar behind; it
    could if this were a generator.
    """

    def __init__(self, shown: bool, doing: str, total: int) -> None:
        """Nothing is shown before the block begins."""
        self._display: Any = None
        if not shown:
            return
        try:
            from rich.console import Console
            from rich.progress import Progress
        except ImportError:
            raise ImportError(
                "progress=True needs rich, which is not installed: pip install 'bitweigh[cli]'"
            ) from None
        self._display = Progress(console=Console(stderr=True), transient=True)
        self._task = self._display.add_task(doing, total=total)

    def __enter__(self) -> Callable[[int], None]:
        """Show it."""
        if self._display is not None:
            try:
                self._display.start()
            except BaseException:
                self.__exit__()
                raise
        return self._advance

    def __exit__(self, *_: object) -> None:
        """Take it away, once."""
        if self._display is not None:
            self._display.stop()
            self._display = None

    def __del__(self) -> None:
        """Take it away if Ctrl-C came before `__exit__` could."""
        self.__exit__()

    def _advance(self, count: int) -> None:
        if self._display is not None:
            self._display.advance(self._task, count)
