"""Texts of notifications to owners and admins about transitions of leases and moves of hosts."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType

from climate.domain.hosts import pools
from climate.domain.hosts.pools import Move, OnEnd, Pool, Transition
from climate.domain.lease import Lease
from climate.domain.notifications import Notice
from climate.domain.status import MISSED, EventKind

NOTHING: Mapping[str, str] = MappingProxyType({})

UNTRIED = "climate did not run in that time, or had no worker for it"
"""Reason of a missed start that was never put back for another reason."""

END_TEXTS = {
    OnEnd.TERMINATE: "its servers are deleted",
    OnEnd.RECYCLE: "its servers go on until their hosts are needed, and nothing new can be booted there",
    OnEnd.RELEASE: "its servers go on, on hosts that are no longer its own",
}


def of_lease(transition: Transition) -> Iterator[Notice]:
    """Yield the notifications to the owner.

    They report a missed start, the end of a hold or a wait, missing hosts, additional events, before_end, grace and
    the end.
    """
    lease = transition.after
    started = lease.event(EventKind.START).carried_out
    yield from of_start(transition)
    yield from _degraded(transition)
    if transition.did(EventKind.EXPIRE):
        yield _notice(lease, "lease.hold_expired", f"Lease {lease.name} was not confirmed in time and is deleted")
    if transition.did(EventKind.WAIT_OVER):
        yield _notice(lease, "lease.not_granted", f"Lease {lease.name} got nothing in time and is deleted")
    for event in transition.additional:
        body = {"event_id": str(event.id), "event_type": event.name, "time": event.due_at.isoformat()}
        yield _notice(lease, "lease.event", f"Lease {lease.name}: {event.name}, for {time_text(event.due_at)}", body)
    if transition.did(EventKind.BEFORE_END) and started and _notifies_before_end(lease):
        ends = f"Lease {lease.name} ends at {time_text(lease.period.end)}"
        yield _notice(lease, "lease.before_end", f"{ends}; {_grace(lease)}{_fate(lease)}")
    if transition.did(EventKind.CLOSE) and started:
        last = time_text(lease.event(EventKind.END).due_at)
        over = (
            f"Lease {lease.name} is over: nothing new can be booted; "
            f"unless it is prolonged before {last}, then {_fate(lease)}"
        )
        yield _notice(lease, "lease.grace", over)
    if transition.did(EventKind.END) and started:
        yield _notice(lease, "lease.ended", f"Lease {lease.name} has ended")


def of_start(transition: Transition) -> Iterator[Notice]:
    """Yield a notification that a lease was over before it could be started; no other one says so."""
    lease, start = transition.after, transition.after.event(EventKind.START)
    if start.outcome != MISSED or transition.before.event(EventKind.START).outcome == MISSED:
        return
    period = f"from {time_text(lease.period.start)} to {time_text(lease.period.end)}"
    refused = transition.before.event(EventKind.START).reason
    why = f"it could not be started: {refused}" if refused else UNTRIED
    body = {"start_date": lease.period.start.isoformat(), "reason": why}
    yield _notice(lease, "lease.missed", f"Lease {lease.name} was never started: it was {period}, and {why}", body)


def _degraded(transition: Transition) -> Iterator[Notice]:
    lease = transition.after
    for r in lease.reservations:
        if r.missing > transition.before.reservation(r.id).missing:
            lacks = f"Lease {lease.name} lacks {r.missing} of what it reserved: its hosts were not ready in time"
            body = {"reservation_id": str(r.id), "missing": r.missing}
            yield Notice("lease.degraded", lacks, lease.project_id, lease.user_id, lease.id, body=body)


def of_grant(lease: Lease) -> Notice:
    """Return the notification that a lease got the resources for which it has waited."""
    period = f"from {time_text(lease.period.start)} to {time_text(lease.period.end)}"
    body = {"start_date": lease.period.start.isoformat()}
    return _notice(lease, "lease.granted", f"Lease {lease.name} got its resources: it lasts {period}", body)


def of_hosts(moves: Iterable[Move]) -> Iterator[Notice]:
    """Yield notifications to admins about hosts that do not return at once."""
    for place, fact in moves:
        if fact.pool == Pool.RECYCLING:
            waits = f"Host {place.name} recycles until its last server is gone: {fact.reason}"
            yield Notice("host.recycling", waits, host=place.host, body={"host": place.name, "reason": fact.reason})


def _notice(lease: Lease, kind: str, message: str, more: Mapping[str, str] = NOTHING) -> Notice:
    end = lease.event(EventKind.END).due_at
    body = {
        "lease_id": str(lease.id),
        "name": lease.name,
        "end_date": lease.period.end.isoformat(),
        "ends_for_good": end.isoformat(),
        "on_end": sorted(_policies(lease)),
        **more,
    }
    return Notice(kind, message, lease.project_id, lease.user_id, lease.id, body=body)


def _notifies_before_end(lease: Lease) -> bool:
    """Return whether before_end sends a notification: an empty one does not, a type without that choice does."""
    return any(r.spec.get("before_end") != "" for r in lease.reservations) or not lease.reservations


def _policies(lease: Lease) -> set[OnEnd]:
    return {pools.on_end(r) for r in lease.reservations if r.holds}


def _fate(lease: Lease) -> str:
    fates = [END_TEXTS[policy] for policy in OnEnd if policy in _policies(lease)]
    return "; ".join(fates) or "its resources are released"


def _grace(lease: Lease) -> str:
    """Return the text about the end of the grace period, if there is one."""
    last = lease.event(EventKind.END).due_at
    return f"nothing new can be booted then, and at {time_text(last)} " if last > lease.period.end else ""


def time_text(moment: datetime) -> str:
    """Return a time as texts to people have it."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
