"""Notifications to other services about the transitions of leases, as Blazar sends them."""

from collections.abc import Iterator

from climate.domain.events.event import Event
from climate.domain.lease import Lease
from climate.domain.notifications import Audience, Notice
from climate.domain.status import DONE, UNDONE, EventKind, HoldState
from climate.service.admission import enforcement
from climate.service.notifications import lease_payload
from climate.settings import Settings

TOLD = (EventKind.START, EventKind.ADDITIONAL, EventKind.BEFORE_END, EventKind.END)


def of(settings: Settings, before: Lease | None, after: Lease) -> list[Notice]:
    """Return the notifications about a transition of a lease, for the configured services."""
    notices: list[Notice] = []
    if settings.notify_url:
        notices += [_notice(kind, after) for kind in _kinds(before, after)]
    if settings.enforcement_url and after.parent is None and _ended(before, after):
        context = enforcement.context(settings, after.user_id, after.project_id)
        body = {"context": context, "lease": lease_payload.of(after)}
        notices.append(_notice(enforcement.ON_END, after, Audience.ENFORCEMENT, body))
    return notices


def _notice(
    kind: str, lease: Lease, audience: Audience = Audience.HOOK, body: lease_payload.Body | None = None
) -> Notice:
    said = lease_payload.of(lease) if body is None else body
    return Notice(kind, kind, lease.project_id, lease.user_id, lease.id, body=said, audience=audience)


def _kinds(before: Lease | None, after: Lease) -> Iterator[str]:
    if before is None:
        yield "lease.create"
        return
    if _requested(before) != _requested(after) or _confirmed(before, after):
        yield "lease.update"
    known = {event.id: event for event in before.events}
    for event in after.events:
        yield from _kinds_of_event(known.get(event.id), event)
    if after.gone and not before.gone:
        yield "lease.delete"


def _kinds_of_event(before: Event | None, after: Event) -> Iterator[str]:
    if after.kind in TOLD and after.carried_out and not (before and before.carried_out):
        yield f"lease.event.{after.type}"
    if after.kind is EventKind.BEFORE_END and after.status is UNDONE and before and before.status is DONE:
        yield f"lease.event.{after.kind}.stop"


def _requested(lease: Lease) -> object:
    return lease.name, lease.period, lease.sharing, [(r.spec, r.holds) for r in lease.reservations]


def _confirmed(before: Lease, after: Lease) -> bool:
    return before.held and not (after.held or after.gone or after.deleting)


def _ended(before: Lease | None, after: Lease) -> bool:
    over = after.hold_state is HoldState.RELEASED
    return over and before is not None and not before.waits and before.hold_state is not HoldState.RELEASED
