"""Observed power state of a host, compared with the requested one."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

ON, OFF = "on", "off"


class Verdict(StrEnum):
    AS_BEFORE = "as before"
    CAME_UP = "came up"
    WENT_OFF = "went off"
    STAYED_OFF = "stayed off"  # it did not come up in time, or its power supply refuses for good
    STAYED_ON = "stayed on"  # the same for switching off


@dataclass(frozen=True, slots=True)
class PowerObservation:
    """Recorded and observed power state of a host."""

    on: bool
    """Recorded state: it was up when last observed, or has never been off."""
    since: datetime
    """Start of the recorded state."""
    wanted: str | None
    """Requested state, ON or OFF; None: no request."""
    wanted_at: datetime | None
    state: str
    """State reported by its power supply: ON, OFF or another word."""
    well: bool | None
    """Set if the cloud reports that it can run servers; None: unknown."""
    refused: bool = False
    """Set if its power supply refuses the request for good."""
    idle: bool = True
    """Set if nobody uses it or counts on it now."""


@dataclass(frozen=True, slots=True)
class PowerTimeLimits:
    """Time limits of switching."""

    switching: timedelta
    """Time until a host must be in the requested state."""
    stale: timedelta
    """Time for which the cloud may still report a host as well after it went off."""


def coming(on: bool, wanted: str | None) -> bool:
    """Return whether the host is being switched on."""
    return wanted == ON and not on


def going(on: bool, wanted: str | None) -> bool:
    """Return whether the host is being switched off: no other request is possible until it is off, or has stayed on.

    A machine reports ON while it shuts down, and asking for ON then changes nothing.
    """
    return wanted == OFF and on


def judge(observation: PowerObservation, now: datetime, patience: PowerTimeLimits) -> Verdict:
    """Return the verdict: up if the host is on and well in the cloud; off if its power supply reports OFF.

    A used host that is found off is not recorded as off: it has failed, which the failure round handles.
    """
    return _of_one_on(observation, now, patience) if observation.on else _of_one_off(observation, now, patience)


def _of_one_on(observation: PowerObservation, now: datetime, patience: PowerTimeLimits) -> Verdict:
    going_off = going(observation.on, observation.wanted)
    if observation.state == OFF and (going_off or observation.idle):
        return Verdict.WENT_OFF
    if going_off and (observation.refused or _overdue(observation, now, patience)):
        return Verdict.STAYED_ON
    return Verdict.AS_BEFORE


def _of_one_off(observation: PowerObservation, now: datetime, patience: PowerTimeLimits) -> Verdict:
    if observation.state == ON and observation.well and now - observation.since >= patience.stale:
        return Verdict.CAME_UP
    if coming(observation.on, observation.wanted):
        unknown = observation.state == ON and observation.well is None
        if observation.refused or (_overdue(observation, now, patience) and not unknown):
            return Verdict.STAYED_OFF
    return Verdict.AS_BEFORE


def _overdue(observation: PowerObservation, now: datetime, patience: PowerTimeLimits) -> bool:
    return observation.wanted_at is not None and now - observation.wanted_at >= patience.switching
