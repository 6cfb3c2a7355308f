"""Parts of leases in child zones and cells: requests to children, and the actions of events on them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from climate.cloud import CloudError, NotYet, Refused
from climate.cloud.children import (
    CELL,
    ZONE,
    Action,
    Asker,
    Child,
    Confirm,
    Hold,
    Look,
    Outcome,
    PartAnswer,
    PartLease,
    PartOrder,
    PartRequest,
    Prolong,
    Release,
    Verdict,
)
from climate.context import Climate
from climate.domain.lease import Lease, Reservation
from climate.domain.lease_part import Part
from climate.domain.policy import ADMIN, MEMBER, Caller
from climate.domain.status import EventKind

OWN = frozenset({"min", "max", "zone", "cell", "across"})
"""Keys of a reservation that say how it is split; the others go to each child."""


def child_of(part: Part) -> Child:
    """Return the child of a part."""
    return Child(CELL, 0, part.cell) if part.cell else Child(ZONE, part.zone_id, part.zone)


def spread(child: Child, *, across: bool) -> dict[str, bool]:
    """Return the keys of a part that a zone may spread further, over the zones below it."""
    return {"across": True} if across and child.kind == ZONE else {}


def role(caller: Caller) -> str:
    """Return the role that children grant to the caller's requests."""
    return ADMIN if caller.is_admin else MEMBER


def hold_request(caller: Caller, lease: Lease, reservation: Reservation, part: Part) -> PartRequest:
    """Build the request to hold a part. It is idempotent: the child holds the part once."""
    assert lease.hold_until is not None
    spec = {key: value for key, value in reservation.spec.items() if key not in OWN}
    at_once = lease.period.start <= lease.created_at
    order = PartOrder(
        lease.name,
        None if at_once else lease.period.start,
        lease.period.end,
        {
            **spec,
            "min": part.least,
            "max": part.most,
            **spread(child_of(part), across=bool(reservation.spec.get("across"))),
        },
    )
    seconds = int((lease.hold_until - lease.created_at).total_seconds())
    asker = Asker(lease.project_id, role(caller))
    return PartRequest(child_of(part), asker, Hold(order, str(part.id), seconds, lease.hold_until))


def confirm(lease: Lease, part: Part) -> PartRequest:
    """Build the request to confirm a held part."""
    return _request(lease, part, Confirm(_known(part), str(part.id)))


def release(lease: Lease, part: Part) -> PartRequest:
    """Build the request to release a part."""
    return _request(lease, part, Release(_known(part)))


def prolong(lease: Lease, part: Part, end: datetime, *, dry_run: bool = False) -> PartRequest:
    """Build the request to change the end of a part."""
    return _request(lease, part, Prolong(_known(part), end, lease.version, dry_run))


def _request(lease: Lease, part: Part, action: Action) -> PartRequest:
    """Build a request in the name of the engine, which may change its parts within its agreements."""
    return PartRequest(child_of(part), Asker(lease.project_id, ADMIN), action)


def _known(part: Part) -> UUID:
    assert part.lease_id is not None
    return part.lease_id


def act(climate: Climate, kind: EventKind, lease: Lease, reservation: Reservation) -> None:
    """Carry out an event of the lease for the parts of a reservation.

    Harmless when repeated. Raises NotYet while a child is still working, CloudError if one does not answer,
    Refused if a part is lost.
    """
    if kind is EventKind.END:
        _release(climate, lease, reservation)
    elif kind is EventKind.SYNC:
        _sync(climate, lease, reservation)


def _release(climate: Climate, lease: Lease, reservation: Reservation) -> None:
    parts = [part for part in reservation.parts if part.in_force]
    seen = _read_leases(climate, lease, parts)
    left = [part for part in parts if seen[part.id] is not None]
    _send_requests(climate, [release(lease, part) for part in left])
    if any(result is not None for result in _read_leases(climate, lease, left).values()):
        raise NotYet("a child is still ending its part of the lease")


def _sync(climate: Climate, lease: Lease, reservation: Reservation) -> None:
    parts = [part for part in reservation.parts if part.in_force]
    seen = _read_leases(climate, lease, parts)
    if any(one is None for one in seen.values()):
        raise Refused("a child has lost its part of the lease")
    other = [part for part in parts if _differs(seen[part.id], lease.period.end)]
    for answer in _send_requests(climate, [prolong(lease, part, lease.period.end) for part in other]):
        if not answer.is_done:
            raise CloudError(f"a child does not give its part the new end yet ({answer.reason})")


def _differs(lease: PartLease | None, end: datetime) -> bool:
    return lease is not None and not lease.is_over and lease.end != end


def _read_leases(climate: Climate, lease: Lease, parts: Sequence[Part]) -> dict[UUID, PartLease | None]:
    """Return the child's lease of each part; None if it is gone."""
    answers = _send_requests(climate, [_request(lease, part, Look(_known(part), lease.version)) for part in parts])
    for answer in answers:
        if answer.lease is None and answer.verdict is not Verdict.GONE:
            raise CloudError(f"a child does not show its part of the lease ({answer.reason or 'no lease'})")
    return {part.id: answer.lease for part, answer in zip(parts, answers, strict=True)}


def _send_requests(climate: Climate, requests: Sequence[PartRequest]) -> list[PartAnswer]:
    """Return all answers; raise CloudError if one is missing, after all requests were sent."""
    outcomes = climate.children.send_all(requests)
    for outcome in outcomes:
        if isinstance(outcome, CloudError):
            raise CloudError("a child does not answer")
    return [outcome for outcome in outcomes if isinstance(outcome, PartAnswer)]


def held_in(outcome: Outcome) -> tuple[UUID, UUID, int] | None:
    """Return the ids of the child's lease and reservation, and the number of its hosts, if the child holds them."""
    lease = None if isinstance(outcome, CloudError) else outcome.lease
    if lease is None or lease.reservation_id is None or lease.hosts is None:
        return None
    return lease.id, lease.reservation_id, lease.hosts
