"""What a look at a host's power supply means, next to what the host was asked to be."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

ON, OFF = "on", "off"


class Verdict(StrEnum):
    AS_BEFORE = "as before"
    CAME_UP = "came up"
    WENT_OFF = "went off"
    STAYED_OFF = "stayed off"  # it was to come up and has not in its time, or its supply refuses it for good
    STAYED_ON = "stayed on"  # the same, of one that was to go off


@dataclass(frozen=True, slots=True)
class Glance:
    """A host as it stands on the books, and as it was just seen."""

    on: bool
    """By its facts: it was up when it was last looked at, or has never been off."""
    since: datetime
    """When that began."""
    wanted: str | None
    """What it was asked to be, ON or OFF; None: nothing is asked of it."""
    wanted_at: datetime | None
    state: str
    """What its supply says: ON, OFF or another word for neither."""
    well: bool | None
    """Whether the cloud says that it can run servers; None: the cloud cannot say."""
    refused: bool = False
    """Its supply will never do what is asked of it."""
    idle: bool = True
    """Whether nobody counts on it just now."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may take."""

    switching: timedelta
    """Until a host is as it was asked to be."""
    stale: timedelta
    """For so long after a host went off the cloud may still call it well."""


def coming(on: bool, wanted: str | None) -> bool:
    """Whether the host is on its way up."""
    return wanted == ON and not on


def going(on: bool, wanted: str | None) -> bool:
    """Whether the host is on its way down: nothing else may be asked of it until it is off, or has stayed on.

    While a machine shuts down it says that it is on, and asking for that changes nothing.
    """
    return wanted == OFF and on


def judge(glance: Glance, now: datetime, patience: Patience) -> Verdict:
    """Up is who is on and well in the cloud's eyes; off is who is seen to be off.

    A host that somebody uses is not called off because it was found so: it has failed, which others see to.
    """
    if going(glance.on, glance.wanted):
        if glance.state == OFF:
            return Verdict.WENT_OFF
        return Verdict.STAYED_ON if glance.refused or _overdue(glance, now, patience) else Verdict.AS_BEFORE
    if glance.on:
        return Verdict.WENT_OFF if glance.state == OFF and glance.idle else Verdict.AS_BEFORE
    if glance.state == ON and glance.well and now - glance.since >= patience.stale:
        return Verdict.CAME_UP
    if coming(glance.on, glance.wanted):
        unknown = glance.state == ON and glance.well is None
        if glance.refused or (_overdue(glance, now, patience) and not unknown):
            return Verdict.STAYED_OFF
    return Verdict.AS_BEFORE


def _overdue(glance: Glance, now: datetime, patience: Patience) -> bool:
    return glance.wanted_at is not None and now - glance.wanted_at >= patience.switching
