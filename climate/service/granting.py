"""What stands between working out what a lease would hold, and recording it."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.facts import Fact
from climate.domain.lease import Lease, fold
from climate.domain.policy import Caller
from climate.service import lifecycle, limits, notices
from climate.service.enforcement import Gate
from climate.service.limits import Bounds
from climate.store import leases


@dataclass(frozen=True, slots=True)
class Grant:
    """The limits and the agreement under which one request is carried out."""

    climate: Climate
    caller: Caller
    gate: Gate
    bounds: Bounds

    def record(self, conn: Connection, now: datetime, before: Lease | None, *facts: Fact) -> Lease:
        """Record facts that are within the limits and agreed to, and tell of them; refusals are the errors of both."""
        after = fold(facts, before)
        self.bounds.check(conn, now, before, after)
        self.gate.enter(conn, before, after)
        after = leases.record(conn, self.caller, before, *facts)
        notices.tell(conn, now, *lifecycle.of(self.climate.settings, before, after))
        return after


def begin(climate: Climate, conn: Connection, caller: Caller, gate: Gate, *, hold: bool = False) -> Grant:
    """To be called before any lease or host is locked: it may wait for others of the same project.

    `hold`: the lease that is asked for is to be held.
    """
    return Grant(climate, caller, gate, limits.begin(climate, conn, caller, hold=hold))


def freely(climate: Climate, caller: Caller) -> Grant:
    """For changes that take nothing, such as another name."""
    return Grant(climate, caller, Gate(needed=False), Bounds(climate, caller.project_id, {}))
