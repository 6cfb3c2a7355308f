"""Notifications to the owner of a lease of which hosts are in sub-leases."""

from collections.abc import Sequence
from datetime import datetime

from climate.domain.lease import Lease
from climate.domain.notifications import Notice
from climate.domain.sharing.sublease import Sublet
from climate.service.notifications.notice_texts import time_text


def warning(lease: Lease, hosts: Sequence[Sublet]) -> Notice:
    """Return the warning that hosts are about to be taken for a sub-lease."""
    at = min(host.take_at for host in hosts)
    message = f"{_hosts(len(hosts))} of lease {lease.name} will be taken at {time_text(at)} for a sub-lease"
    return _notice(lease, "lease.sublet_warning", f"{message}: servers there are deleted or recycled", len(hosts), at)


def taken(lease: Lease, count: int, at: datetime) -> Notice:
    """Return the notification that hosts were taken for a sub-lease."""
    message = f"{_hosts(count)} of lease {lease.name} {'was' if count == 1 else 'were'} taken for a sub-lease"
    return _notice(lease, "lease.sublet", message, count, at)


def returned(lease: Lease, count: int, at: datetime) -> Notice:
    """Return the notification that hosts of a sub-lease were returned."""
    message = f"{_hosts(count)} of lease {lease.name} {'is' if count == 1 else 'are'} back from a sub-lease"
    return _notice(lease, "lease.sublet_returned", message, count, at)


def _hosts(count: int) -> str:
    return "1 host" if count == 1 else f"{count} hosts"


def _notice(lease: Lease, kind: str, message: str, count: int, at: datetime) -> Notice:
    body = {"lease_id": str(lease.id), "count": count, "at": at.isoformat()}
    return Notice(kind, message, lease.project_id, lease.user_id, lease.id, body=body)
