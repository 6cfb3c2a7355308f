"""What stands between working out what a lease would hold, and recording it."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.facts import Fact
from climate.domain.lease import Lease, fold
from climate.domain.policy import Caller
from climate.service.admission import limits
from climate.service.admission.enforcement import Gate
from climate.service.admission.limits import Bounds
from climate.service.leases import lease_pools
from climate.service.notifications import delivery, lease_events
from climate.store import limits as stored_limits
from climate.store.admission import Rules
from climate.store.leases import leases


@dataclass(frozen=True, slots=True)
class Grant:
    """The limits and the agreement under which one request is carried out."""

    climate: Climate
    caller: Caller
    gate: Gate
    bounds: Bounds

    @property
    def has_waited(self) -> bool:
        """Whether others of the same project had to be waited for, which takes time."""
        return bool(self.bounds.values)

    def record(self, conn: Connection, now: datetime, before: Lease | None, *facts: Fact) -> Lease:
        """Record facts that are within the limits and agreed to, and tell of them; refusals are the errors of both."""
        after = fold(facts, before)
        self.bounds.check(conn, now, before, after)
        self.gate.enter(conn, before, after)
        pools = lease_pools.together(self.climate, conn, after) if before is None else None
        after = leases.record(conn, self.caller, before, *facts, pools=pools)
        delivery.tell(conn, now, *lease_events.of(self.climate.settings, before, after))
        return after


def begin(
    climate: Climate, conn: Connection, caller: Caller, gate: Gate, rules: Rules | None = None, *, hold: bool = False
) -> Grant:
    """To be called before any lease or host is locked: it may wait for others of the same project.

    `rules` are those of the caller's project, where they were read already.  `hold`: the lease
    that is asked for is to be held.
    """
    known = rules.limits if rules else stored_limits.of(conn, caller.project_id)
    return Grant(climate, caller, gate, limits.begin(climate, conn, caller, known, hold=hold))


def freely(climate: Climate, caller: Caller) -> Grant:
    """For changes that take nothing, such as another name."""
    return Grant(climate, caller, Gate(needed=False), Bounds(climate, caller.project_id, {}))
