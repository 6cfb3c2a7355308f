"""Waiting for a state on the server, with progress on a terminal."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from climate.cli.errors import ERROR, TIMEOUT, Failure
from climate.cli.session import Session

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Poll periods in seconds: they grow from the first to the second."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A state to wait for: `look` returns a resource or None if it is gone; the other fields judge it."""

    what: str
    look: Callable[[], dict[str, Any] | None]
    reached: Callable[[dict[str, Any] | None], bool]
    failed: Callable[[dict[str, Any] | None], str | None] = lambda thing: None
    """Function that returns why the goal cannot be reached any more, or None."""


def wait(session: Session, goal: Goal, timeout: float) -> dict[str, Any]:
    """Return the resource once the goal is reached, {} if it is gone; Failure if that fails or takes too long."""
    began, pause, thing = time.monotonic(), FIRST_PAUSE, goal.look()
    progress = Progress(goal.what, began)
    with _display(session, progress):
        while not goal.reached(thing):
            if reason := goal.failed(thing):
                raise Failure(reason, ERROR, "check its history, or ask the administrator", details={"seen": thing})
            spent = time.monotonic() - began
            if spent >= timeout:
                raise Failure(
                    f"{goal.what} is still {status(thing)} after {timeout:.0f} s", TIMEOUT, "wait longer: --timeout 1h"
                )
            progress.state = status(thing)
            time.sleep(min(pause, timeout - spent))
            pause = min(pause * 1.5, LONGEST_PAUSE)
            thing = goal.look()
    return thing or {}


def status(thing: dict[str, Any] | None) -> str:
    """Return the status of a resource."""
    return "gone" if thing is None else str(thing.get("status", "there"))


@dataclass
class Progress:
    """A wait with the last known state; each rendering has the seconds until then."""

    what: str
    began: float
    state: str = ""

    def __rich__(self) -> str:
        state = f": {self.state}" if self.state else ""
        return f"{self.what}{state} ({time.monotonic() - self.began:.0f} s)"


def _display(session: Session, progress: Progress) -> AbstractContextManager[object]:
    if not session.interactive:
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True, no_color=not session.colourful).status(progress)
