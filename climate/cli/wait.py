"""Waiting for a state on the server, with progress on a terminal."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Generic, TypeVar

from climate.cli.connection.session import Session
from climate.cli.errors import ERROR, TIMEOUT, UNREACHABLE, Failure

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Poll periods in seconds: they grow from the first to the second."""
PATIENCE = 30.0
"""Seconds for which a wait goes on while the server cannot be reached, such as during its restart."""


T = TypeVar("T", bound=Mapping[str, object])
"""A resource as the server answered it."""


@dataclass(frozen=True, slots=True)
class Goal(Generic[T]):
    """A state to wait for: `look` returns a resource or None if it is gone; the other fields judge it."""

    what: str
    look: Callable[[], T | None]
    reached: Callable[[T | None], bool]
    failed: Callable[[T | None], str | None] = lambda thing: None
    """Function that returns why the goal cannot be reached any more, or None."""
    advice: str = "ask the administrator"
    """Hint of the failure when the goal cannot be reached any more."""


def wait(session: Session, goal: Goal[T], timeout: float, patience: float = PATIENCE) -> T | None:
    """Return the resource once the goal is reached, None if it is gone; Failure if that fails or takes too long."""
    try:
        return _wait(session, goal, timeout, patience)
    except KeyboardInterrupt:
        session.say(f"only the wait has ended: {goal.what} stays as it was requested")
        raise


def _wait(session: Session, goal: Goal[T], timeout: float, patience: float) -> T | None:
    progress = Progress(goal.what, time.monotonic())
    with _display(session, progress):
        return poll(goal, timeout, patience, progress.show)


def poll(goal: Goal[T], timeout: float, patience: float, show: Callable[[str], None]) -> T | None:
    """Return the resource as `wait` does, and pass each state that was seen to `show`."""
    began, pause, thing = time.monotonic(), FIRST_PAUSE, goal.look()
    while not goal.reached(thing):
        if reason := goal.failed(thing):
            raise Failure(reason, ERROR, goal.advice, details={"seen": thing})
        spent = time.monotonic() - began
        if spent >= timeout:
            raise Failure(
                f"{goal.what} is still {status(thing)} after {timeout:.0f} s", TIMEOUT, "wait longer: --timeout 1h"
            )
        show(status(thing))
        time.sleep(min(pause, timeout - spent))
        pause = min(pause * 1.5, LONGEST_PAUSE)
        thing = _read(goal, show, min(patience, timeout - (time.monotonic() - began)))
    return thing


def existing(goal: Goal[T], thing: T | None) -> T:
    """Return the resource that a wait has returned; Failure if it is gone."""
    if thing is None:
        raise Failure(f"{goal.what} is gone", ERROR, goal.advice)
    return thing


def _read(goal: Goal[T], show: Callable[[str], None], patience: float) -> T | None:
    """Return the resource; a server that cannot be reached is asked again until the patience has ended."""
    began = time.monotonic()
    while True:
        try:
            return goal.look()
        except Failure as failure:
            if failure.code != UNREACHABLE:
                raise
            if time.monotonic() - began >= patience:
                failure.hint += f"; {goal.what} stays as it was requested"
                raise
        show("the server cannot be reached")
        time.sleep(min(LONGEST_PAUSE, max(0.0, patience - (time.monotonic() - began))))


def status(thing: Mapping[str, object] | None) -> str:
    """Return the status of a resource."""
    return "gone" if thing is None else str(thing.get("status", "there"))


@dataclass
class Progress:
    """A wait with the last known state; each rendering has the seconds until then."""

    what: str
    began: float
    state: str = ""

    def show(self, state: str) -> None:
        self.state = state

    def __rich__(self) -> str:
        state = f": {self.state}" if self.state else ""
        return f"{self.what}{state} ({time.monotonic() - self.began:.0f} s)"


def _display(session: Session, progress: Progress) -> AbstractContextManager[object]:
    if not session.interactive:
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True, no_color=not session.colourful).status(progress)
