"""The progress bar of long operations: what is done, rate, time left. Needs rich.

Shared by the library (`progress=True`) and the command line. rich is imported only for a bar that
may be shown.
"""

from __future__ import annotations

from typing import Any, Self

__all__ = ["ProgressBar"]


class ProgressBar:
    """A bar on stderr that disappears when it is done; `with ProgressBar(...) as bar`.

    Nothing runs between `__enter__` and the block, so that Ctrl-C cannot leave a bar behind; it
    could if this were a generator.
    """

    _display: Any = None
    """rich's display, if any; set here so that `__del__` finds it after a Ctrl-C in `__init__`."""

    def __init__(
        self,
        description: str,
        total: float | None = None,
        *,
        unit: str = "",
        shown: bool | None = None,
    ) -> None:
        """Describe the bar; it appears when the block begins.

        Without `total` it shows no share and no time left. `unit` is what is counted. By default
        a bar is shown only on a terminal.
        """
        self._unit = unit
        if shown is False:
            return
        try:
            from rich.console import Console
            from rich.progress import (
                BarColumn,
                Progress,
                TaskProgressColumn,
                TextColumn,
                TimeRemainingColumn,
            )
        except ImportError:
            raise ImportError(
                "a progress bar needs rich, which is not installed: pip install 'bitweigh[cli]'"
            ) from None
        console = Console(stderr=True)
        if shown is None and not console.is_terminal:
            return
        columns: list[Any] = [TextColumn("{task.description}"), BarColumn()]
        if total is not None:
            columns.append(TaskProgressColumn())
        columns.append(TextColumn("{task.fields[rate]}"))
        if total is not None:
            columns += [TextColumn("left"), TimeRemainingColumn()]
        self._display = Progress(*columns, console=console, transient=True)
        self._task = self._display.add_task(description, total=total, rate="")

    def __enter__(self) -> Self:
        """Show the bar."""
        if self._display is not None:
            try:
                self._display.start()
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the bar, once."""
        if self._display is not None:
            self._display.stop()
            self._display = None

    def __del__(self) -> None:
        """Remove the bar if Ctrl-C came before `__exit__` could."""
        self.__exit__()

    def advance(self, count: float) -> None:
        """Move the bar on by `count`."""
        if self._display is None:
            return
        self._display.advance(self._task, count)
        task = self._display.tasks[0]
        if self._unit and task.speed:
            rate = f"{task.completed:,.0f} {self._unit}, {task.speed:,.0f} {self._unit}/s"
            self._display.update(self._task, rate=rate)
