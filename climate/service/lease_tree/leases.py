"""Leases over the tree: hosts of this deployment and of its child zones and cells, allocated in two phases.

This deployment records the lease as HELD, with its own hosts and with the parts that children are asked for. Each child
holds its part; the journal has each part before it is confirmed. Then each child confirms, and this deployment last. If
a process dies in between, the hold expires. The event `expire_hold` deletes the lease, and its end event releases parts
that children may have confirmed.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy import Connection

from climate.cloud import CloudError
from climate.cloud.children import Child, Verdict
from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import (
    Busy,
    ClimateError,
    Conflict,
    NotEnoughHosts,
    NotFound,
    PreconditionFailed,
    Unavailable,
)
from climate.domain.events import event_transitions
from climate.domain.facts import Fact, LeasePartConfirmed, LeasePartHeld, LeasePartReleased
from climate.domain.lease import Lease
from climate.domain.lease_part import Part
from climate.domain.planning import holds as rules
from climate.domain.policy import Caller, require
from climate.domain.sharing.sharing import Access, refusal
from climate.domain.status import PartState
from climate.service.events import unbegun_claims
from climate.service.lease_tree import parts as lease_parts
from climate.service.lease_tree import splits as tree_splits
from climate.service.leases import confirmation, leases, shortages
from climate.service.leases import update as changes
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes, PartsFirst
from climate.service.sharing import access
from climate.service.transaction import run
from climate.store import idempotency
from climate.store.idempotency import Key
from climate.store.leases import leases as stored
from climate.time_ordered_ids import time_ordered_id

log = structlog.get_logger(__name__)

HOLD = timedelta(seconds=120)
"""Time limit of the two phases."""

ROUNDS = 3
"""Number of searches for hosts when a child no longer has the hosts that it offered."""

TRIES = 3
"""Number of requests to confirm to a child that does not answer."""


class _Refused(Exception):
    """A child does not hold a part that it had offered."""

    def __init__(self, children: frozenset[Child]) -> None:
        super().__init__()
        self.children = children


def create(
    climate: Climate, caller: Caller, order: LeaseRequest, key: Key | None = None, *, dry_run: bool = False
) -> Lease:
    """Record a lease as `leases.create` does; with hosts of children if its own do not suffice.

    A reservation of hosts may name the `zone` or the `cell` in which it must lie, and may be spread `across`
    several. Otherwise it lies in one.
    """
    require(caller, "leases:post")
    if tree_splits.begins_here(climate, order):
        try:
            made = leases.create(climate, caller, order, key, dry_run=dry_run)
        except tree_splits.NOT_HERE as refusal:
            if not _may_lie_in_children(climate, order, refusal):
                raise
        else:
            if not made.parts or dry_run:
                return made
    if key and (known := leases.created_earlier(climate, caller, key)):
        if (resumed := _resumed(climate, caller, known, order)) is not None:
            return resumed
        run(climate, idempotency.forget, caller, key)
    return _placed(climate, caller, order, key, dry_run=dry_run)


def _may_lie_in_children(climate: Climate, order: LeaseRequest, refusal: ClimateError) -> bool:
    """Return whether children may give what is refused here. Raise NotEnoughHosts with their names if none answers."""
    if all(tree_splits.is_only_for_here(climate, spec) for spec in order.reservations):
        return False
    if climate.children.active():
        return True
    if silent := tree_splits.silence(climate.children.silent()):
        raise NotEnoughHosts(f"{refusal}{silent}") from None
    return False


def _resumed(climate: Climate, caller: Caller, known: Lease, order: LeaseRequest) -> Lease | None:
    """Return the lease of an earlier request and continue its creation; None if that was undone."""
    if not known.parts:
        return known
    try:
        lease = leases.get(climate, caller, known.id)
    except NotFound:
        return None
    if lease.deleting:
        return None
    try:
        return _carried_out(climate, caller, lease, order)
    except _Refused:
        _delete_with_parts(climate, caller, lease)
        return None


def _placed(climate: Climate, caller: Caller, order: LeaseRequest, key: Key | None, *, dry_run: bool) -> Lease:
    without: frozenset[Child] = frozenset()
    for _ in range(ROUNDS):
        splits = tree_splits.splits(climate, caller, order, without)
        split = replace(order, splits=splits, hold=_length(climate, order)) if splits else order
        lease = leases.create(climate, caller, split, key, dry_run=dry_run)
        if dry_run or not lease.parts:
            return lease
        try:
            return _carried_out(climate, caller, lease, order)
        except _Refused as refused:
            without |= refused.children
        _delete_with_parts(climate, caller, lease)
        if key:
            run(climate, idempotency.forget, caller, key)
    raise NotEnoughHosts("Not enough hosts available: hosts that children offered were taken each time")


def _carried_out(climate: Climate, caller: Caller, lease: Lease, order: LeaseRequest) -> Lease:
    """Hold all parts, and confirm them unless only a hold was requested."""
    lease = _hold_parts(climate, caller, lease)
    return lease if order.hold is not None else confirm(climate, caller, lease.id)


def _length(climate: Climate, order: LeaseRequest) -> timedelta:
    """Return the length of the hold: as requested, or as the two phases need, up to its own end."""
    if order.hold is not None:
        return order.hold
    with reading(climate.engine) as conn:
        left = order.end - climate.now(conn)
    return timedelta(
        seconds=max(1, int(min(HOLD, left / 2, timedelta(seconds=climate.settings.hold_seconds)) / SECOND))
    )


SECOND = timedelta(seconds=1)

# The two phases.


def _hold_parts(climate: Climate, caller: Caller, lease: Lease) -> Lease:
    """Return the lease with all parts held; raise _Refused if a child refuses, Unavailable if one does not answer."""
    if not lease.held:
        return lease
    planned = [(r, part) for r in lease.reservations for part in r.parts if part.state is PartState.PLANNED]
    outcomes = climate.children.send_all([lease_parts.hold_request(caller, lease, r, part) for r, part in planned])
    refused, silent = set(), []
    for (_, part), outcome in zip(planned, outcomes, strict=True):
        held = lease_parts.held_in(outcome)
        if held is not None and part.least <= held[2] <= part.most:
            lease = _note(climate, caller, lease.id, part, _held_as(part, held))
        elif isinstance(outcome, CloudError):
            silent.append(part)
        else:
            refused.add(lease_parts.child_of(part))
    if refused:
        raise _Refused(frozenset(refused))
    if silent:
        _delete_with_parts(climate, caller, lease)
        raise _unanswered(silent, "all parts are released, try again")
    return lease


def _unanswered(parts: Sequence[Part], outcome: str) -> Unavailable:
    """Return the refusal that names the children which did not answer."""
    names = sorted({part.where for part in parts})
    return Unavailable(f"The {', the '.join(names)} {'does' if len(names) == 1 else 'do'} not answer: {outcome}")


def _held_as(part: Part, held: tuple[UUID, UUID, int]) -> Callable[[datetime], Fact]:
    return lambda now: LeasePartHeld(part.id, now, *held)


def _note(climate: Climate, caller: Caller, lease_id: UUID, part: Part, fact: Callable[[datetime], Fact]) -> Lease:
    """Record the answer of a child about a part; skip a repeated one. Raise Conflict once the hold is over."""
    return run(climate, _append, climate, caller, lease_id, part, fact)


def _append(
    conn: Connection, climate: Climate, caller: Caller, lease_id: UUID, part: Part, fact: Callable[[datetime], Fact]
) -> Lease:
    lease = stored.get(conn, lease_id, project_id=leases.scope(caller), lock=True)
    now = climate.now(conn)
    present = next(one for one in lease.parts if one.id == part.id)
    if present.state is not part.state:
        return lease
    if not lease.held:
        raise rules.expired(lease)
    return stored.record(conn, caller, lease, fact(now))


def confirm(climate: Climate, caller: Caller, lease_id: UUID, key: str = "") -> Lease:
    """Confirm a held lease as `confirmation.confirm` does, after its parts in children."""
    try:
        lease = leases.get(climate, caller, lease_id)
    except NotFound:
        return confirmation.confirm(climate, caller, lease_id, key)
    if (relation := access.relation(caller, lease)) is not Access.OWNER:
        raise refusal(relation)
    if lease.held and lease.parts:
        with reading(climate.engine) as conn:
            rules.running(lease, climate.now(conn))
        if any(part.state is PartState.PLANNED for part in lease.parts):
            raise Conflict(f"The lease {lease.id} is still being created: its parts are not all held")
        _confirm_parts(climate, caller, lease)
    return confirmation.confirm(climate, caller, lease_id, key)


def _confirm_parts(climate: Climate, caller: Caller, lease: Lease) -> None:
    left = [part for part in lease.parts if part.state is PartState.HELD]
    for _ in range(TRIES):
        outcomes = climate.children.send_all([lease_parts.confirm(lease, part) for part in left])
        silent = []
        for part, outcome in zip(left, outcomes, strict=True):
            if isinstance(outcome, CloudError):
                silent.append(part)
            elif outcome.is_done:
                _note(climate, caller, lease.id, part, _confirmed(part))
            else:
                _delete_with_parts(climate, caller, lease)
                raise Conflict(
                    f"The {part.where} released its part of the lease: all parts are released, create the lease again"
                )
        left = silent
        if not left:
            return
    _delete_with_parts(climate, caller, lease)
    raise _unanswered(left, "all parts are released, try again")


def _confirmed(part: Part) -> Callable[[datetime], Fact]:
    return lambda now: LeasePartConfirmed(part.id, now)


def _released(part: Part) -> Callable[[datetime], Fact]:
    return lambda now: LeasePartReleased(part.id, now)


def _delete_with_parts(climate: Climate, caller: Caller, lease: Lease) -> None:
    """Delete the lease, with all parts that children are known to hold; its own events retry failed requests."""
    try:
        lease = leases.get(climate, caller, lease.id)
        held = [part for part in lease.parts if part.in_force]
        answers = climate.children.send_all([lease_parts.release(lease, part) for part in held])
        for part, answer in zip(held, answers, strict=True):
            if not isinstance(answer, CloudError) and answer.verdict is not Verdict.REFUSED:
                _note(climate, caller, lease.id, part, _released(part))
        leases.delete(climate, caller, lease.id)
    except ClimateError as error:
        log.warning("lease over children not deleted yet", lease_id=str(lease.id), reason=str(error))


# Change of dates.


def update(
    climate: Climate,
    caller: Caller,
    lease_id: UUID,
    wanted: Changes,
    version: int | None = None,
    *,
    dry_run: bool = False,
) -> Lease:
    """Change a lease as `update.update` does, over all its parts.

    Every child agrees to a later end before it is recorded here; if one refuses, the others restore the old end.
    An earlier end is recorded here first, because no child can refuse it. Each child is then asked until it
    answers.
    """
    try:
        return changes.update(climate, caller, lease_id, wanted, version, dry_run=dry_run)
    except PartsFirst:
        lease = leases.get(climate, caller, lease_id)
    if access.relation(caller, lease) is not Access.OWNER:
        raise Conflict("Only members of its project can prolong a lease with parts in child zones or cells")
    assert wanted.end is not None
    agreed = replace(wanted, agreed=True)
    tried = changes.update(climate, caller, lease_id, agreed, version, dry_run=True)
    if dry_run:
        _prolong(climate, lease, wanted.end, dry_run=True)
        return tried
    planned = _plan_sync(climate, caller, lease_id, HOLD, version)
    try:
        _prolong(climate, planned, wanted.end)
        return changes.update(climate, caller, lease_id, agreed, planned.version)
    except PreconditionFailed:
        raise Busy("The lease was changed concurrently; this change was not applied, try again") from None
    except ClimateError:
        _plan_sync(climate, caller, lease_id, timedelta(0))
        raise


def _plan_sync(climate: Climate, caller: Caller, lease_id: UUID, delay: timedelta, version: int | None = None) -> Lease:
    """Plan an event that sends the dates of the lease to its parts after the delay, unless it is changed before."""
    return run(climate, _write_sync_event, climate, caller, lease_id, delay, version)


def _write_sync_event(
    conn: Connection, climate: Climate, caller: Caller, lease_id: UUID, delay: timedelta, version: int | None
) -> Lease:
    lease = stored.get(conn, lease_id, project_id=leases.scope(caller), lock=True)
    shortages.check_version(lease, version)
    now = climate.now(conn)
    lease = unbegun_claims.take_back(conn, caller, lease, now)
    event_transitions.refuse_while_running(lease)
    after = stored.record(conn, caller, lease, event_transitions.sync(lease, now, now + delay, time_ordered_id))
    leases.wake_if_soon(conn, climate, after, now)
    return after


def _prolong(climate: Climate, lease: Lease, end: datetime, *, dry_run: bool = False) -> None:
    """Extend the lease in all children; raise Conflict or Unavailable if one does not agree."""
    parts = [part for part in lease.parts if part.in_force]
    outcomes = climate.children.send_all([lease_parts.prolong(lease, part, end, dry_run=dry_run) for part in parts])
    for part, outcome in zip(parts, outcomes, strict=True):
        if isinstance(outcome, CloudError):
            raise _unanswered([part], "the lease stays as it was, try again")
        if not outcome.is_done:
            raise Conflict(f"The {part.where} does not keep its part of the lease for so long ({outcome.reason})")
