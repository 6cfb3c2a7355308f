"""Parts of leases in child zones: what is sent to a child for them, and what is made of its answers."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from climate.cloud import CloudError, NotYet, Refused
from climate.cloud.zones import ZoneAnswer, ZoneRequest
from climate.context import Climate
from climate.domain.errors import InvalidInput
from climate.domain.lease import Lease, Part, Reservation
from climate.domain.policy import ADMIN, MEMBER, Caller
from climate.domain.status import EventKind
from climate.service import dates

OWN = frozenset({"min", "max", "zone", "across"})
"""Keys of a reservation that say how it is split; the others go to each child."""

GONE = 404
BROKEN = 500
"""Statuses from which on it is not known what the child has done."""

ENDING = frozenset({"DELETING", "TERMINATING"})
OVER = frozenset({"TERMINATED", "ERROR"})

Outcome = ZoneAnswer | CloudError


def body(name: str, start: datetime | None, end: datetime, spec: Mapping[str, Any], seconds: int) -> dict[str, Any]:
    """A lease that a child is asked to hold.  `spec` is its reservation, no `start` means now."""
    return {
        "name": name,
        "start_date": "now" if start is None else written(start),
        "end_date": written(end),
        "before_end_date": None,
        "events": [],
        "hold_seconds": seconds,
        "reservations": [{"resource_type": "physical:host", **spec}],
    }


def role(caller: Caller) -> str:
    """The role that children grant to the caller's requests."""
    return ADMIN if caller.is_admin else MEMBER


def hold(caller: Caller, lease: Lease, reservation: Reservation, part: Part) -> ZoneRequest:
    """The request to hold a part: the same whenever it is sent, so that the child gives it once."""
    assert lease.hold_until is not None
    spec = {key: value for key, value in reservation.spec.items() if key not in OWN}
    at_once = lease.period.start <= lease.created_at
    seconds = int((lease.hold_until - lease.created_at).total_seconds())
    wanted = body(
        lease.name,
        None if at_once else lease.period.start,
        lease.period.end,
        {**spec, "min": part.least, "max": part.most},
        seconds,
    )
    return ZoneRequest(part.zone_id, "POST", "/leases", wanted, key=str(part.id), role=role(caller))


def confirm(part: Part) -> ZoneRequest:
    """The request to confirm a part that is held."""
    return ZoneRequest(part.zone_id, "POST", f"/leases/{part.lease_id}/confirm", key=str(part.id))


def release(part: Part) -> ZoneRequest:
    """The request to give a part up."""
    return ZoneRequest(part.zone_id, "DELETE", f"/leases/{part.lease_id}")


def prolong(part: Part, end: datetime, *, dry_run: bool = False) -> ZoneRequest:
    """The request to give a part another end."""
    query = {"dry_run": "true"} if dry_run else None
    return ZoneRequest(part.zone_id, "PUT", f"/leases/{part.lease_id}", {"end_date": written(end)}, query)


def act(climate: Climate, kind: EventKind, lease: Lease, reservation: Reservation) -> None:
    """Do for the parts of a reservation what an event of the lease asks for.

    Harmless when repeated.  Raises NotYet while a child is still at it, CloudError
    where one does not answer, Refused where a part is lost.
    """
    if kind is EventKind.END:
        _release(climate, reservation)
    elif kind is EventKind.SYNC:
        _sync(climate, lease, reservation)


def _release(climate: Climate, reservation: Reservation) -> None:
    parts = [part for part in reservation.parts if part.in_force]
    seen = _look(climate, parts)
    left = [part for part in parts if seen[part.id] is not None]
    _asked(climate, [release(part) for part in left])
    if any(status is not None for status in _look(climate, left).values()):
        raise NotYet("a child zone is still ending its part of the lease")


def _sync(climate: Climate, lease: Lease, reservation: Reservation) -> None:
    parts = [part for part in reservation.parts if part.in_force]
    seen = _look(climate, parts)
    if any(one is None for one in seen.values()):
        raise Refused("a child zone has lost its part of the lease")
    other = [part for part in parts if _differs(seen[part.id], lease.period.end)]
    for answer in _asked(climate, [prolong(part, lease.period.end) for part in other]):
        if not answer.is_good:
            raise CloudError(f"a child zone does not give its part the new end yet (HTTP {answer.status})")


def _differs(shown: Mapping[str, Any] | None, end: datetime) -> bool:
    if shown is None or shown.get("status") in ENDING | OVER:
        return False
    try:
        return dates.read(f"{shown.get('end_date')}Z") != end
    except InvalidInput:
        raise CloudError("a child zone shows a lease without end_date") from None


def _look(climate: Climate, parts: Sequence[Part]) -> dict[UUID, Mapping[str, Any] | None]:
    """The child's lease of each part as it is shown; None where it is gone."""
    answers = _asked(climate, [ZoneRequest(part.zone_id, "GET", f"/leases/{part.lease_id}") for part in parts])
    found: dict[UUID, Mapping[str, Any] | None] = {}
    for part, answer in zip(parts, answers, strict=True):
        shown = lease_in(answer)
        if shown is None and answer.status != GONE:
            raise CloudError(f"a child zone does not show its part of the lease (HTTP {answer.status})")
        found[part.id] = shown
    return found


def _asked(climate: Climate, requests: Sequence[ZoneRequest]) -> list[ZoneAnswer]:
    """All answers; CloudError where one is missing, after all were sent."""
    outcomes = climate.zones.ask_all(requests)
    for outcome in outcomes:
        if isinstance(outcome, CloudError):
            raise CloudError("a child zone does not answer")
    return [outcome for outcome in outcomes if isinstance(outcome, ZoneAnswer)]


def lease_in(outcome: Outcome) -> Mapping[str, Any] | None:
    """The lease in a good answer; None for every other answer."""
    if isinstance(outcome, CloudError) or not outcome.is_good or not isinstance(outcome.body, dict):
        return None
    shown = outcome.body.get("lease")
    return shown if isinstance(shown, dict) else None


def held_in(outcome: Outcome) -> tuple[UUID, UUID, int] | None:
    """The ids of the lease and of its reservation, and the number of hosts, where a child says that it holds them."""
    shown = lease_in(outcome)
    try:
        (one,) = shown["reservations"] if shown else [{}]
        return UUID((shown or {})["id"]), UUID(one["id"]), int(one["held_hosts"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def written(moment: datetime) -> str:
    """A moment as a child reads it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
