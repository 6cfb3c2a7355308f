"""Facts about maintenance windows. Each window has its own stream, by its id."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from climate.domain.period import Period

PLANNED, ACTIVE = "planned", "active"


@dataclass(frozen=True, slots=True)
class WindowPlanned:
    """Creation of a maintenance window of a host."""

    at: datetime
    host: int
    during: Period
    reason: str
    move_servers: bool = False
    """Set if servers are moved away from the host during the window."""


@dataclass(frozen=True, slots=True)
class WindowChanged:
    """New period or reason of a window."""

    at: datetime
    during: Period
    reason: str
    move_servers: bool | None = None
    """None: unchanged."""


@dataclass(frozen=True, slots=True)
class WindowBegun:
    """Start of the maintenance of the host."""

    at: datetime


@dataclass(frozen=True, slots=True)
class WindowClosed:
    """End of the window: `state` is done or cancelled."""

    at: datetime
    state: str


WindowFact = WindowPlanned | WindowChanged | WindowBegun | WindowClosed


@dataclass(frozen=True, slots=True)
class FoldedWindow:
    """State of a maintenance window, folded from its facts."""

    host: int
    during: Period
    reason: str
    state: str = PLANNED
    move_servers: bool = False


def fold(facts: Iterable[WindowFact]) -> FoldedWindow:
    """Return the state of one window after its facts; raise ValueError unless they begin with WindowPlanned."""
    standing: FoldedWindow | None = None
    for fact in facts:
        standing = _after(standing, fact)
    if standing is None:
        raise ValueError("nothing has happened to this window")
    return standing


def _after(standing: FoldedWindow | None, fact: WindowFact) -> FoldedWindow:
    if isinstance(fact, WindowPlanned):
        return FoldedWindow(fact.host, fact.during, fact.reason, move_servers=fact.move_servers)
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
