"""The progress bar: when it is shown, and that it is always removed."""

from __future__ import annotations

import sys

import pytest
from interrupted_everywhere import interrupted_everywhere

from bitweigh._progress import ProgressBar

rich_progress = pytest.importorskip("rich.progress")


def test_it_is_shown_on_a_terminal_with_rate_and_unit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with ProgressBar("adding", 10, unit="rows") as bar:
        bar.advance(4)
        bar.advance(6)
    shown = capsys.readouterr().err
    assert "adding" in shown
    assert "100%" in shown
    assert "10 rows, " in shown
    assert "rows/s" in shown


def test_rows_of_unknown_number_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with ProgressBar("sorting", unit="rows") as bar:
        bar.advance(4000)
        bar.advance(6000)
    shown = capsys.readouterr().err
    assert "10,000 rows, " in shown
    assert "%" not in shown


@pytest.mark.parametrize(("shown", "forced"), [(None, ""), (False, "1")])
def test_nothing_is_written_to_a_log_or_where_it_is_not_wanted(
    shown: bool | None,
    forced: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.delenv("TTY_COMPATIBLE", raising=False)
    monkeypatch.setenv("FORCE_COLOR", forced)
    with ProgressBar("adding", 10, shown=shown) as bar:
        bar.advance(10)
    assert capsys.readouterr().err == ""


def test_work_of_unknown_length_has_no_percentage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with ProgressBar("compacting"):
        pass
    shown = capsys.readouterr().err
    assert "compacting" in shown
    assert "%" not in shown


def test_it_says_how_to_install_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    ProgressBar("adding", 10, shown=False)
    with pytest.raises(ImportError, match=r"needs rich.*pip install 'bitweigh\[cli\]'"):
        ProgressBar("adding", 10, shown=True)


# An interrupt inside `__del__` can only be ignored.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_it_is_gone_after_ctrl_c_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    displays = []

    class Display:
        def __init__(self, *_: object, **__: object) -> None:
            self.running = False
            displays.append(self)

        def add_task(self, *_: object, **__: object) -> int:
            return 0

        def start(self) -> None:
            self.running = bool(1)

        def stop(self) -> None:
            self.running = False

        def advance(self, *_: object) -> None:
            self.tasks = [self]

        speed = None

    monkeypatch.setattr(rich_progress, "Progress", Display)

    def show(_: None) -> None:
        with ProgressBar("adding", 2, shown=True) as bar:
            bar.advance(1)

    def check(_: None) -> None:
        assert not any(display.running for display in displays)
        displays.clear()

    assert interrupted_everywhere(lambda: None, show, check) > 5


def test_a_bar_that_cannot_be_shown_is_removed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def start(_: object) -> None:
        calls.append("start")
        raise KeyboardInterrupt

    monkeypatch.setattr(rich_progress.Progress, "start", start)
    monkeypatch.setattr(rich_progress.Progress, "stop", lambda _: calls.append("stop"))
    bar = ProgressBar("adding", 3, shown=True)
    with pytest.raises(KeyboardInterrupt), bar:
        pass
    del bar
    assert calls == ["start", "stop"], "removing it twice would print an empty line"
