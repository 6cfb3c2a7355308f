"""Leases and their history in plain words."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from climate.domain.events import event_transitions
from climate.domain.facts import Fact
from climate.domain.lease import Lease, Reservation, evolve
from climate.domain.planning import preemption
from climate.domain.status import LeaseStatus
from climate.store.journal.journal import Entry

STATES: Mapping[LeaseStatus, str] = {
    LeaseStatus.HELD: "Held for you until the time below: nothing of it starts unless you take it.",
    LeaseStatus.PENDING: "Reserved: everything is allocated, and it starts by itself.",
    LeaseStatus.STARTING: "Starting: the cloud prepares what was reserved.",
    LeaseStatus.ACTIVE: "Running: what was reserved is yours until the end.",
    LeaseStatus.TERMINATING: "Ending: servers are ended and hosts are given back.",
    LeaseStatus.TERMINATED: "Over: everything was given back.",
    LeaseStatus.DELETING: "Being deleted: it is gone once everything was given back.",
    LeaseStatus.ERROR: "Something failed: the reason is below.",
}
OPEN = frozenset({LeaseStatus.PENDING, LeaseStatus.STARTING, LeaseStatus.ACTIVE})
"""Statuses in which the end of a lease can be changed."""

KINDS: Mapping[str, str] = {
    "LeaseCreated": "Lease created",
    "LeaseRenamed": "Lease renamed",
    "SharingChanged": "Sharing changed",
    "LeaseRescheduled": "Times changed",
    "ReservationChanged": "Reservation changed",
    "KeptAmountsReleased": "Kept storage released",
    "EventClaimed": "Event begun",
    "EventShareSettled": "Part of an event done",
    "EventSharePutBack": "Part of an event put back",
    "EventFinished": "Event done",
    "EventSkipped": "Event skipped",
    "EventPutBack": "Event put back, to be tried again",
    "EventClaimTakenBack": "Event taken back",
    "EventFailed": "Event failed",
    "EventRequeued": "Event requeued",
    "HoldConfirmed": "Hold taken as a lease",
    "HoldRenewed": "Hold renewed",
    "HoldExpired": "Hold expired",
    "LeasePartHeld": "Part held elsewhere",
    "LeasePartConfirmed": "Part confirmed elsewhere",
    "LeasePartReleased": "Part released elsewhere",
    "LeaseGranted": "Hosts given to the waiting lease",
    "WaitExpired": "Wait ended in vain",
    "HostsSublet": "Hosts promised to a sub-lease",
    "SubletWarned": "Warning that hosts are taken for a sub-lease",
    "SubletHostsTaken": "Hosts taken for a sub-lease",
    "SubletHostsReturned": "Sub-lease over",
    "SubleaseProlonged": "Hosts kept for longer, with the parent",
    "SubleaseReturned": "Hosts returned to the parent",
    "PreemptionPlanned": "Host to be taken",
    "PreemptionWarned": "Warning that a host is taken",
    "HostPreempted": "Host taken",
    "DeletionRequested": "Deletion requested",
    "LeaseDeleted": "Lease deleted",
}


@dataclass(frozen=True, slots=True)
class Change:
    """Value before and after an entry of the history; times are datetimes."""

    name: str
    before: object
    after: object


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """Entry of the history of a lease: what happened, when, by whom, why, and what it changed."""

    version: int
    at: datetime
    title: str
    about: str
    """Type of the event that it is about, or an empty text."""
    author: str
    reason: str
    changes: Sequence[Change]


def state(lease: Lease) -> str:
    """Return the status of a lease as a sentence."""
    if lease.waits:
        return "In the waiting list: it gets its hosts when some are released."
    return STATES[lease.status]


def is_preemptible(lease: Lease) -> bool:
    """Return whether ordinary leases may take the hosts of a lease."""
    return any(preemption.is_preemptible(reservation.spec) for reservation in lease.reservations)


def taken_at(lease: Lease) -> datetime | None:
    """Return the first time at which hosts of a preemptible lease are taken; None if none is to be taken."""
    return min((plan.take_at for reservation in lease.reservations for plan in reservation.preemptions), default=None)


def subleases(lease: Lease) -> list[tuple[str, int]]:
    """Return the open sub-leases of a lease, oldest first, each with its number of hosts."""
    return [(str(number), hosts) for number, hosts in event_transitions.open_subleases(lease).items()]


def can_sublet(lease: Lease) -> bool:
    """Return whether a lease may have sub-leases: a single lease with whole hosts of its own, to come or running."""
    whole = any(reservation.resource_type == "physical:host" for reservation in lease.reservations)
    bound = lease.parent or lease.series_id or any(reservation.parts for reservation in lease.reservations)
    return can_change(lease) and whole and not (bound or is_preemptible(lease))


def can_change(lease: Lease) -> bool:
    """Return whether the end of a lease can be changed at all."""
    return lease.status in OPEN and not lease.waits


def why_not(lease: Lease) -> str:
    """Return why the end of a lease cannot be changed; an empty text if it can."""
    if lease.status is LeaseStatus.HELD:
        return "It is only held: take it first."
    if lease.waits:
        return "It stands in line."
    return "" if can_change(lease) else f"It is {lease.status}."


def resources(reservation: Reservation) -> str:
    """Return what a reservation asked for, such as `2 hosts`."""
    spec = reservation.spec
    if reservation.resource_type == "physical:host":
        least, most = spec.get("min"), spec.get("max")
        number = f"{least}" if least == most else f"{least} to {most}"
        return f"{number} host" + ("" if number == "1" else "s")
    amount = spec.get("amount") or spec.get("size_gb") or 1
    nouns = {
        "virtual:instance": "servers" if "amount" in spec else "server",
        "flavor:instance": "servers",
        "virtual:floatingip": "floating addresses",
        "storage:pool": "GB of storage",
    }
    return f"{amount} {nouns.get(reservation.resource_type, reservation.resource_type)}"


def requirements(reservation: Reservation) -> list[str]:
    """Return the requirements of a reservation on its hosts, such as `gpu_count > 1`."""
    names = ("hypervisor_properties", "resource_properties")
    return [requirement(str(reservation.spec[name])) for name in names if reservation.spec.get(name)]


def requirement(text: str) -> str:
    """Return an expression of requirements in the usual notation; one that is not JSON as it is."""
    try:
        return _written(json.loads(text))
    except ValueError:
        return text


def _written(tree: object) -> str:
    match tree:
        case ["and" | "or" as word, *parts] if len(parts) > 1:
            return f" {word} ".join(f"({_written(one)})" if _is_joined(one) else _written(one) for one in parts)
        case ["not", part]:
            return f"not ({_written(part)})"
        case [str() as operator, str() as name, value]:
            return f"{name.removeprefix('$')} {operator} {value}"
        case _:
            return json.dumps(tree)


def _is_joined(tree: object) -> bool:
    return isinstance(tree, list) and bool(tree) and tree[0] in ("and", "or")


def happenings(entries: Sequence[Entry]) -> list[HistoryEntry]:
    """Return the history of a lease, oldest first."""
    result: list[HistoryEntry] = []
    before: Lease | None = None
    for entry in entries:
        if isinstance(entry.fact, Fact):
            after = evolve(before, entry.fact)
            result.append(_happening(entry, before, after))
            before = after
    return result


def steps_until(history: Sequence[HistoryEntry], at: datetime | None) -> int:
    """Return the number of entries of a history up to a time; all of them without one."""
    return sum(at is None or one.at <= at for one in history)


def happening_title(kind: str) -> str:
    """Return the words for a kind of fact; without any of its own, those of its name."""
    return KINDS.get(kind) or re.sub(r"(?<!^)([A-Z])", r" \1", kind).capitalize()


def _happening(entry: Entry, before: Lease | None, after: Lease) -> HistoryEntry:
    fact = entry.fact
    kind = type(fact).__name__
    event_id = getattr(fact, "event_id", None)
    about = next((event.type for event in after.events if event.id == event_id), "")
    return HistoryEntry(
        version=entry.version,
        at=fact.at,
        title=happening_title(kind),
        about=about,
        author=str(entry.actor.get("user_id") or "climate"),
        reason=str(getattr(fact, "reason", "") or ""),
        changes=[] if before is None else _changes(before, after),
    )


_SHOWN: Mapping[str, Callable[[Lease], object]] = {
    "Name": lambda lease: lease.name,
    "Start": lambda lease: lease.period.start,
    "End": lambda lease: lease.period.end,
    "Status": lambda lease: str(lease.status),
    "Held until": lambda lease: lease.hold_until,
    "Hosts": lambda lease: sum(len(one.holds) for one in lease.reservations),
    "Missing hosts": lambda lease: sum(one.missing for one in lease.reservations),
    "Reservations": lambda lease: ", ".join(resources(one) for one in lease.reservations),
    "Requirements": lambda lease: ", ".join(text for one in lease.reservations for text in requirements(one)),
}


def _changes(before: Lease, after: Lease) -> list[Change]:
    values = ((name, value(before), value(after)) for name, value in _SHOWN.items())
    return [Change(name, old, new) for name, old, new in values if old != new]


def time_left(lease: Lease, now: datetime) -> timedelta:
    """Return the time until a lease starts or, once it has, until it ends."""
    return (lease.period.start if now < lease.period.start else lease.period.end) - now
