"""Ctrl-C at every moment of a call at which Python may see one, one after the other.

CPython looks for signals when a function begins and when a call of a C function has ended, besides
loops; nowhere else. These are the moments of `sys.setprofile`, which may raise there.
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
    """Make a subject, interrupt the call with it, check what is left; once for each moment.

    The last call is not interrupted. Returns how many were, so that a test can tell that it tested
    anything. What `check` finds wrong is reported with the moment that led to it.
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
    """Call it with Ctrl-C at this moment; says where that was, None if the call ended before."""
    left = number
    moment: str | None = None

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal left, moment
        if event not in ("call", "c_return") or moment is not None or frame is outside:
            return
        if left:
            left -= 1
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
        # Some libraries raise an error of their own while they clean up.
        if moment is None:
            raise
    finally:
        sys.setprofile(before)
    return moment
