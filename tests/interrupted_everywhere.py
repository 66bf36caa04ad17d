"""Ctrl-C at each moment of a call at which Python can notice one, one after the other.

CPython checks for signals when a function begins, when a call of a C function has ended, and in
loops; nowhere else. `sys.setprofile` is called at the first two moments, and may raise there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


def interrupted_everywhere(
    prepare: Callable[[], T], call: Callable[[T], object], check: Callable[[T], object]
) -> int:
    """Prepare a subject, interrupt the call with it, check the subject; once for each moment.

    The last call is not interrupted. Returns the number of interrupted calls, so that a test can
    assert that there were any. Errors of `check` are annotated with the moment that led to them.
    """
    number = 0
    while True:
        subject = prepare()
        moment = _interrupted(call, subject, number)
        try:
            check(subject)
        except BaseException as error:
            error.add_note(f"after Ctrl-C at {moment}, moment {number}")
            raise
        if moment is None:
            return number
        number += 1


def _interrupted(call: Callable[[T], object], subject: T, number: int) -> str | None:
    """Call with Ctrl-C at moment `number`; return where that was, None if the call ended before."""
    remaining = number
    moment: str | None = None

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal remaining, moment
        if event not in ("call", "c_return") or moment is not None or frame is outside:
            return
        if remaining:
            remaining -= 1
            return
        after = f", after {argument.__qualname__}" if event == "c_return" else ", at its start"
        moment = f"{frame.f_code.co_filename}:{frame.f_lineno}{after}"
        raise KeyboardInterrupt

    outside = sys._getframe()
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        call(subject)
    except BaseException:
        # Some libraries raise a different error while they clean up.
        if moment is None:
            raise
    finally:
        sys.setprofile(before)
    return moment
