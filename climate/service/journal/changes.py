"""The journal as a stream of changes: each is delivered once, in the order of positions, and none is lost."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.policy import Caller
from climate.domain.sharing.sharing import Access, Sharing, access
from climate.store.journal import change_feed
from climate.store.journal.change_feed import Change

AT_ONCE = 1000
"""Maximum of changes of one read."""

FARTHEST = 5000
"""Changes that a reader may have missed; one that missed more has to read everything anew."""


class Topic(StrEnum):
    """Sort of object that a change is about."""

    LEASE = "lease"
    HOST = "host"
    MAINTENANCE = "maintenance"
    POOL = "pool"
    LIMITS = "limits"
    OTHER = "other"  # series, users, projects, flavors and all else in the journal
    CALENDAR = "calendar"  # something that may concern the calendar, and nothing else about it


@dataclass(frozen=True, slots=True)
class Notice:
    """A change as one viewer may know it; without kind and ids for the topic CALENDAR."""

    position: int
    topic: Topic
    kind: str | None = None
    at: datetime | None = None
    lease_id: UUID | None = None
    host_id: int | None = None
    project_id: str | None = None


def position(climate: Climate) -> int | None:
    """Return a position up to which whatever is read afterwards has all changes; None while somebody appends."""
    with reading(climate.engine) as conn:
        last = change_feed.last_taken(conn)
        return None if change_feed.writers(conn) else last


class Follower:
    """Reads the journal from a position on; one thread may use it at a time."""

    def __init__(self, climate: Climate, position: int | None = None) -> None:
        """Create a reader that begins after `position`; with None at the present end."""
        self._climate = climate
        self.position = position
        """Everything up to it was delivered; None before the first read that found the end."""
        self._gaps_until = 0
        self._pending: tuple[int, frozenset[str]] | None = None
        """A position, and the transactions that may still have taken one up to it."""

    def read(self) -> list[Change]:
        """Return the next changes. Those after a gap wait until its transaction is over."""
        with reading(self._climate.engine) as conn:
            if self.position is None:
                self._settle(conn, change_feed.last_taken(conn))
                if self._pending is None:
                    self.position = self._gaps_until
                return []
            known = self._known(conn, self.position)
            self.position = known[-1].position if known else self.position
        return known

    def _known(self, conn: Connection, position: int) -> list[Change]:
        found = change_feed.after(conn, position, AT_ONCE)
        known = change_feed.settled(found, position, self._gaps_until)
        if len(known) < len(found):
            self._settle(conn, found[-1].position)
            if self._pending is None:  # only a new snapshot has the rows of transactions that were over in between
                return change_feed.settled(change_feed.after(conn, position, AT_ONCE), position, self._gaps_until)
        return known

    def _settle(self, conn: Connection, last: int) -> None:
        """Find out whether all transactions with positions up to one are over; `last` was read before."""
        position, left = self._pending or (last, change_feed.writers(conn))
        left = left & change_feed.writers(conn) if self._pending else left
        self._pending = (position, left) if left else None
        if not left:
            self._gaps_until = max(self._gaps_until, position)

    def missed(self, after: int) -> list[Change] | None:
        """Return the delivered changes after a position; None if they are too many, or the position is unknown."""
        until = self.position or 0
        with reading(self._climate.engine) as conn:
            if after > until:
                return [] if after <= change_feed.last_taken(conn) else None
            found = change_feed.after(conn, after, FARTHEST + 1)
        return None if len(found) > FARTHEST else [change for change in found if change.position <= until]


def topic(change: Change) -> Topic:
    """Return the sort of object that a change is about."""
    if change.lease_id is not None:
        return Topic.LEASE
    if change.host_id is not None:
        return Topic.HOST
    named = {"Window": Topic.MAINTENANCE, "PoolTerms": Topic.POOL, "Limits": Topic.LIMITS}
    return next((one for begin, one in named.items() if change.kind.startswith(begin)), Topic.OTHER)


def _is_shared(change: Change, caller: Caller) -> bool:
    sharing = Sharing(**{kind: tuple(ids) for kind, ids in (change.sharing or {}).items()})
    return change.project_id is not None and access(change.project_id, sharing, caller) is not Access.NONE


def notices(found: Sequence[Change], caller: Caller, lease_id: UUID | None = None) -> list[Notice]:
    """Return what a caller may know of changes; with `lease_id`, only those of this lease.

    Changes of other projects and of hosts are one notice without content, since they may change the calendar.
    """
    known: list[Notice] = []
    for change in found:
        about = topic(change)
        if lease_id is not None and change.lease_id != lease_id:
            continue
        if caller.is_admin or change.project_id == caller.project_id or _is_shared(change, caller):
            ids = (change.lease_id, change.host_id, change.project_id)
            known.append(Notice(change.position, about, change.kind, change.at, *ids))
        elif about in (Topic.LEASE, Topic.HOST, Topic.MAINTENANCE) and lease_id is None:
            if known and known[-1].topic is Topic.CALENDAR:
                known.pop()
            known.append(Notice(change.position, Topic.CALENDAR))
    return known
