"""Admission of a lease, after it was planned and before it is recorded."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.facts import Fact
from climate.domain.lease import Lease, fold
from climate.domain.limits import Limit
from climate.domain.policy import Caller
from climate.service.admission import limits
from climate.service.admission.enforcement import Approval
from climate.service.admission.limits import Bounds
from climate.service.leases import reservation_aggregates
from climate.service.notifications import delivery, lease_events
from climate.store import limits as stored_limits
from climate.store.admission import Rules
from climate.store.leases import leases


@dataclass(frozen=True, slots=True)
class Grant:
    """Limits and approval under which one request is carried out."""

    climate: Climate
    caller: Caller
    gate: Approval
    bounds: Bounds

    @property
    def has_waited(self) -> bool:
        """Return whether the transaction waited for others of the same project, which takes time."""
        return bool(self.bounds.values)

    def record(self, conn: Connection, now: datetime, before: Lease | None, *facts: Fact) -> Lease:
        """Record facts within the limits and with approval, and write notifications; raise the refusals of both.

        A lease that has waited is approved like a new one, because nobody was asked while it had nothing.
        """
        after = fold(facts, before)
        self.bounds.check(conn, now, before, after)
        approved = None if before is None or before.waits else before
        if not after.waits and not after.parent:
            self.gate.check(conn, approved, after)
        pools = reservation_aggregates.aggregate_insert(conn, self.climate, after) if approved is None else None
        after = leases.record(conn, self.caller, before, *facts, pools=pools)
        delivery.notify(conn, now, *lease_events.of(self.climate.settings, before, after))
        return after


def begin(
    conn: Connection,
    climate: Climate,
    caller: Caller,
    gate: Approval,
    rules: Rules | None = None,
    *,
    usual: Limit | None = None,
) -> Grant:
    """Read the limits and lock the project. Call it before any lease or host is locked, because it may wait.

    `rules` are those of the caller's project, if already read. `usual` is the limit with a default in the settings that
    concerns the request, if any.
    """
    known = rules.limits if rules else stored_limits.of(conn, caller.project_id)
    return Grant(climate, caller, gate, limits.begin(conn, climate, caller, known, usual=usual))


def without_limits(climate: Climate, caller: Caller) -> Grant:
    """Return the admission of changes that allocate nothing, such as a new name."""
    return Grant(climate, caller, Approval(needed=False), Bounds(climate, caller.project_id, {}))
