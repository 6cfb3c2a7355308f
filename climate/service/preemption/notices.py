"""Notifications to the owners of preemptible leases.

They name the owner's lease and its hosts, and never the lease that needs the hosts.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from climate.domain.lease import Lease
from climate.domain.notifications import Notice
from climate.domain.planning.preemption import Preemption
from climate.service.notifications.notice_texts import time_text

Names = Sequence[str]
"""Names of hosts; none where owners may not know them."""


def planned(lease: Lease, plans: Iterable[Preemption]) -> Notice:
    """Return the notification that hosts of the lease will be needed later."""
    known = list(plans)
    first = min(plan.take_at for plan in known)
    message = f"{_hosts(len(known))} of preemptible lease {lease.name} {_are(known)} needed from {time_text(first)} on"
    return _notice(lease, "lease.preemption_planned", f"{message}; a warning follows", known, first)


def warning(lease: Lease, plans: Sequence[Preemption], names: Names, *, ends: bool) -> Notice:
    """Return the last warning before hosts are taken. `ends`: too few remain, and the whole lease ends."""
    first = min(plan.take_at for plan in plans)
    others = sum(plan.replaced for plan in plans)
    count = _hosts(len(plans))
    message = f"{count} of preemptible lease {lease.name} {_are(plans)} taken at {time_text(first)}{_list(names)}"
    if ends:
        message += "; too few hosts remain, so the lease ends then"
    elif others:
        message += f"; the lease has {others} other {'host' if others == 1 else 'hosts'} instead from now on"
    return _notice(lease, "lease.preemption_warning", message, plans, first, hosts=list(names), lease_ends=ends)


def preempted(lease: Lease, count: int, names: Names, at: datetime, *, ends: bool) -> Notice:
    """Return the notification that hosts were taken, or that the lease ends for lack of hosts."""
    message = f"{_hosts(count)} of preemptible lease {lease.name} {'was' if count == 1 else 'were'} taken{_list(names)}"
    if ends:
        message += "; too few hosts remain, so the lease ends"
    return _notice(lease, "lease.preempted", message, (), at, hosts=list(names), lease_ends=ends)


def withdrawn(lease: Lease, plans: Sequence[Preemption], at: datetime) -> Notice:
    """Return the notification that hosts are not needed after all."""
    message = f"{_hosts(len(plans))} of preemptible lease {lease.name} {_are(plans)} not needed any more: it keeps "
    message += "the host" if len(plans) == 1 else "the hosts"
    return _notice(lease, "lease.preemption_withdrawn", message, plans, at)


def moved(lease: Lease, count: int, at: datetime) -> Notice:
    """Return the notification that a lease that has not started got other hosts."""
    message = (
        f"Preemptible lease {lease.name} got {count} other {'host' if count == 1 else 'hosts'}: its own are needed"
    )
    return _notice(lease, "lease.preemption_moved", message, (), at)


def _notice(lease: Lease, kind: str, message: str, plans: Sequence[Preemption], at: datetime, **more: object) -> Notice:
    body = {"lease_id": str(lease.id), "name": lease.name, "time": at.isoformat(), "count": len(plans), **more}
    return Notice(kind, message, lease.project_id, lease.user_id, lease.id, body=body)


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def _are(plans: Sequence[Preemption]) -> str:
    return "is" if len(plans) == 1 else "are"


def _list(names: Names) -> str:
    return f": {', '.join(names)}" if names else ""
