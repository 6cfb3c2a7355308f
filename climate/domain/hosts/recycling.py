"""How long the servers that a lease left on a host may go on, and what is done with them then."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from climate.domain.hosts.pools import Deadline, HostPlace, OnEnd


class Turn(StrEnum):
    """What is to be done for a recycling host now."""

    LEAVE = "leave"  # its last server is gone: it goes on to be cleaned, or home
    WAIT = "wait"
    RELEASE = "release"  # to the multi-tenant pool with its servers, as was agreed
    MOVE = "move"  # the servers are moved to other hosts; where there are none, as REPLACE
    REPLACE = "replace"  # the next lease gets another host; where there is none, the servers are deleted
    DELETE = "delete"  # the servers are deleted


@dataclass(frozen=True, slots=True)
class Stay:
    """A host with the servers of a lease that has done with it."""

    place: HostPlace
    on_end: OnEnd = OnEnd.TERMINATE
    policy: Deadline = Deadline.TERMINATE
    over: bool = True
    """Whether the lease has ended; a host may also be taken out of one that goes on."""
    needed_at: datetime | None = None
    """When the next lease that counts on the host starts."""

    def ends_at(self) -> datetime | None:
        """When its servers end in any case: those that were to be deleted end with their lease at the latest."""
        at_once = self.place.since if self.over and self.on_end is OnEnd.TERMINATE else None
        return min((at for at in (self.place.until, at_once) if at), default=None)

    def deadline(self, lead: timedelta) -> datetime | None:
        """When something is done about its servers; `lead` before it is needed.  None: when they go by themselves."""
        needed = self.needed_at - lead if self.needed_at else None
        return min((at for at in (self.ends_at(), needed) if at), default=None)


def turn(stay: Stay, servers: int, lead: timedelta, now: datetime) -> Turn:
    """What to do now for a host on which there are so many servers.  Nothing is deleted before the deadline."""
    if not servers:
        return Turn.LEAVE
    ends, deadline = stay.ends_at(), stay.deadline(lead)
    if ends and ends <= now:
        return Turn.DELETE
    if deadline and deadline <= now:
        if stay.policy is Deadline.MOVE:
            return Turn.MOVE
        return Turn.REPLACE if stay.on_end is OnEnd.RELEASE else Turn.DELETE
    return Turn.RELEASE if stay.on_end is OnEnd.RELEASE and stay.over and not stay.needed_at else Turn.WAIT
