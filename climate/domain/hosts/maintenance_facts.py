"""What has happened to a maintenance window.  Each window has a stream of its own, by its id."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from climate.domain.period import Period

PLANNED, ACTIVE = "planned", "active"


@dataclass(frozen=True, slots=True)
class WindowPlanned:
    """The time of a host is kept free, to work on it."""

    at: datetime
    host: int
    during: Period
    reason: str
    move_servers: bool = False
    """Whether servers are moved away from the host while it is worked on."""


@dataclass(frozen=True, slots=True)
class WindowChanged:
    """The window is at another time, or for another reason."""

    at: datetime
    during: Period
    reason: str
    move_servers: bool | None = None
    """None: as it was."""


@dataclass(frozen=True, slots=True)
class WindowBegun:
    """The host is worked on."""

    at: datetime


@dataclass(frozen=True, slots=True)
class WindowClosed:
    """The window is over: `state` is done or cancelled."""

    at: datetime
    state: str


WindowFact = WindowPlanned | WindowChanged | WindowBegun | WindowClosed


@dataclass(frozen=True, slots=True)
class Standing:
    """A window after all that has happened to it."""

    host: int
    during: Period
    reason: str
    state: str = PLANNED
    move_servers: bool = False


def fold(facts: Iterable[WindowFact]) -> Standing:
    """Return what the facts of one window say; ValueError where they do not begin with its plan."""
    standing: Standing | None = None
    for fact in facts:
        standing = _after(standing, fact)
    if standing is None:
        raise ValueError("nothing has happened to this window")
    return standing


def _after(standing: Standing | None, fact: WindowFact) -> Standing:
    if isinstance(fact, WindowPlanned):
        return Standing(fact.host, fact.during, fact.reason, move_servers=fact.move_servers)
    if standing is None:
        raise ValueError(f"{type(fact).__name__} before WindowPlanned")
    match fact:
        case WindowChanged(_, during, reason, moved):
            kept = standing.move_servers if moved is None else moved
            return replace(standing, during=during, reason=reason, move_servers=kept)
        case WindowBegun():
            return replace(standing, state=ACTIVE)
        case WindowClosed(_, state):
            return replace(standing, state=state)
