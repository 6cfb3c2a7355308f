"""Deadlines and actions for servers that a lease left on a host."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from climate.domain.hosts.pools import DeadlineAction, HostPlace, OnEnd


class NextAction(StrEnum):
    """Next action for a recycling host."""

    LEAVE = "leave"  # its last server is gone: clean it, or return it to its pool
    WAIT = "wait"
    RELEASE = "release"  # move it to the multi-tenant pool with its servers, as agreed
    MOVE = "move"  # move the servers to other hosts; if there are none, as REPLACE
    REPLACE = "replace"  # give the next lease another host; if there is none, delete the servers
    DELETE = "delete"  # delete the servers


@dataclass(frozen=True, slots=True)
class RecyclingHost:
    """Host with servers of a lease that no longer uses it."""

    place: HostPlace
    on_end: OnEnd = OnEnd.TERMINATE
    policy: DeadlineAction = DeadlineAction.TERMINATE
    over: bool = True
    """Set if the lease has ended; a host may also be taken out of a running lease."""
    needed_at: datetime | None = None
    """Start of the next lease that holds the host."""

    def ends_at(self) -> datetime | None:
        """Return the end of its servers in any case: those to be deleted end with their lease at the latest."""
        at_once = self.place.since if self.over and self.on_end is OnEnd.TERMINATE else None
        return min((at for at in (self.place.until, at_once) if at), default=None)

    def deadline(self, lead: timedelta) -> datetime | None:
        """Return the time of the action, `lead` before the next need; None if the servers leave by themselves."""
        needed = self.needed_at - lead if self.needed_at else None
        return min((at for at in (self.ends_at(), needed) if at), default=None)


def next_action(stay: RecyclingHost, servers: int, lead: timedelta, now: datetime) -> NextAction:
    """Return the action for a host with so many servers now. Nothing is deleted before the deadline."""
    if not servers:
        return NextAction.LEAVE
    ends, deadline = stay.ends_at(), stay.deadline(lead)
    if ends and ends <= now:
        return NextAction.DELETE
    if deadline and deadline <= now:
        if stay.policy is DeadlineAction.MOVE:
            return NextAction.MOVE
        return NextAction.REPLACE if stay.on_end is OnEnd.RELEASE else NextAction.DELETE
    return NextAction.RELEASE if stay.on_end is OnEnd.RELEASE and stay.over and not stay.needed_at else NextAction.WAIT
