"""Change of the sharing of a lease, and the prolongation by users with whom it is shared."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from climate.domain.errors import Conflict, Forbidden, InvalidInput
from climate.domain.events import event_transitions
from climate.domain.facts import Fact, LeaseRescheduled
from climate.domain.lease import Lease
from climate.domain.notifications import Notice
from climate.domain.sharing.sharing import NOT_SHARED, Access, Sharing, SharingChanged, refusal
from climate.domain.status import DONE, UNDONE, EventKind
from climate.service.notifications import delivery
from climate.settings import Settings
from climate.time_ordered_ids import time_ordered_id

if TYPE_CHECKING:
    from climate.service.leases.update import Changes

LONGEST_LIST = 255
"""Characters of `filter_tenant_id` of an aggregate of Nova, which lists all projects of a lease."""


def facts(settings: Settings, lease: Lease, sharing: Sharing | None, now: datetime) -> list[Fact]:
    """Return the facts of new sharing; none if it stays as it is.

    For other projects on a running lease an event is due at once, which admits them in the cloud. Raise Busy while
    another event runs, and Conflict for projects on a lease with parts in child zones or cells.
    """
    if sharing is None or sharing == lease.sharing:
        return []
    check(settings, lease, sharing)
    changed: list[Fact] = [SharingChanged(now, sharing, lease.sharing)]
    if set(sharing.projects) != set(lease.sharing.projects):
        event_transitions.refuse_while_running(lease)
        if _is_open(lease):
            changed.append(
                LeaseRescheduled(now, lease.period, (event_transitions.adjustment(lease, now, time_ordered_id),))
            )
    return changed


def check(settings: Settings, lease: Lease, sharing: Sharing) -> None:
    """Raise InvalidInput or Conflict for projects with which a lease cannot be shared."""
    if lease.project_id in sharing.projects:
        raise InvalidInput(f"sharing: the project {lease.project_id} is that of the lease, and need not be named")
    if settings.cloud == "openstack" and len(",".join((lease.project_id, *sharing.projects))) > LONGEST_LIST:
        raise InvalidInput(
            f"sharing: {len(sharing.projects)} projects are too many: Nova's filter_tenant_id holds {LONGEST_LIST} "
            "characters, with a comma between two ids"
        )
    if sharing.projects and lease.parts:
        raise Conflict(
            "A lease with parts in child zones or cells cannot be shared with projects: "
            "reserve hosts of one deployment, or share it with users"
        )


def _is_open(lease: Lease) -> bool:
    """Return whether servers can boot on a lease: it has started, and its end and its grace period have not begun."""
    end = lease.event(EventKind.END)
    started = lease.event(EventKind.START).status is DONE and not lease.gone and not lease.deleting
    closed = any(event.kind is EventKind.CLOSE and event.token for event in lease.events)
    return started and not closed and end.status is UNDONE


def check_prolongation(relation: Access, lease: Lease, changes: "Changes") -> None:
    """Return if a user who is no owner may make these changes. Raise Forbidden.

    An extender may move the end to a later time, and a member of the parent's project may move that of a sub-lease.
    """
    if relation is Access.PARENT and changes.only_the_end:
        return
    if relation is not Access.EXTENDER or not changes.only_the_end:
        raise refusal(relation)
    if changes.end_now or (changes.end is not None and changes.end < lease.period.end):
        raise Forbidden(
            f"You may move the end of this lease to a later time than {lease.period.end:%Y-%m-%d %H:%M} UTC only"
        )


def notify(conn: Connection, now: datetime, before: Lease | None, after: Lease) -> None:
    """Write the notification of new sharing in the transaction of its cause."""
    if after.sharing != (before.sharing if before else NOT_SHARED):
        delivery.notify(conn, now, _notice(after))


def _notice(lease: Lease) -> Notice:
    """Return the notification of those with whom a lease is shared now; it names none of them."""
    counts: Sequence[tuple[int, str]] = (
        (len(lease.sharing.projects), "project"),
        (len(set(lease.sharing.viewers) | set(lease.sharing.extenders)), "user"),
    )
    with_whom = " and ".join(f"{number} {word}{'s' if number > 1 else ''}" for number, word in counts if number)
    message = f"Lease {lease.name} is shared with {with_whom or 'nobody any more'}"
    return Notice("lease.shared", message, lease.project_id, lease.user_id, lease.id)
