"""Leases that are shared with a caller: reads, and refusals of what is for owners only."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Forbidden, NotFound
from climate.domain.facts import LeaseCreated
from climate.domain.lease import Lease, fold
from climate.domain.policy import Caller
from climate.domain.sharing.sharing import Access, Sharing, SharingChanged, access, as_seen, may_boot, refusal
from climate.service.transaction import run
from climate.store.journal import journal
from climate.store.journal.journal import Entry
from climate.store.leases import leases

T = TypeVar("T")


def get(conn: Connection, caller: Caller, lease_id: UUID) -> Lease:
    """Return a lease that the caller may see, with what the caller may know of its sharing. Raise NotFound."""
    return visible(caller, leases.get(conn, lease_id, reader=None if caller.is_admin else caller))


def visible(caller: Caller, lease: Lease) -> Lease:
    """Return a lease with its sharing as the caller may know it."""
    known = as_seen(lease.project_id, lease.sharing, caller)
    return lease if known == lease.sharing else replace(lease, sharing=known)


def relation(caller: Caller, lease: Lease) -> Access:
    """Return what the caller is to a lease."""
    known = access(lease.project_id, lease.sharing, caller)
    if known is not Access.OWNER and lease.parent and lease.parent.project_id == caller.project_id:
        return Access.PARENT
    return known


def for_owners(climate: Climate, caller: Caller, lease_id: UUID, act: Callable[[Caller], T]) -> T:
    """Return the result of an act that finds leases of a project only: the caller's, or that of a sub-lease it gave.

    Raise Forbidden instead of NotFound if the lease is shared with the caller.
    """
    try:
        return act(caller)
    except NotFound:
        lease = shared(climate, caller, lease_id)
        if lease is None:
            raise
        if relation(caller, lease) is not Access.PARENT:
            raise refusal(relation(caller, lease)) from None
    return act(replace(caller, project_id=lease.project_id))


def shared(climate: Climate, caller: Caller, lease_id: UUID) -> Lease | None:
    """Return a lease of another project that the caller may see, or None."""
    if caller.is_admin:
        return None
    try:
        lease = run(climate, get, caller, lease_id)
    except NotFound:
        return None
    return None if relation(caller, lease) is Access.OWNER else lease


def entries(caller: Caller, story: list[Entry]) -> list[Entry] | None:
    """Return the history of a lease as the caller may know it; None if the caller may not see the lease."""
    first = story[0].fact if story else None
    if not isinstance(first, LeaseCreated):
        return None
    lease = fold(journal.of_lease(story))
    found = relation(caller, lease)
    if found is Access.OWNER:
        return story
    return None if found is Access.NONE else [_entry(caller, one) for one in story]


def _entry(caller: Caller, entry: Entry) -> Entry:
    match entry.fact:
        case LeaseCreated(sharing=Sharing() as sharing):
            return replace(entry, fact=replace(entry.fact, sharing=_part(caller, sharing)))
        case SharingChanged(at, sharing, before):
            return replace(entry, fact=SharingChanged(at, _part(caller, sharing), _part(caller, before)))
        case _:
            return entry


def _part(caller: Caller, sharing: Sharing) -> Sharing:
    return as_seen("", sharing, caller)


def check_boot(caller: Caller, lease: Lease, missing: NotFound) -> None:
    """Return if the caller may boot servers on a lease; raise `missing`, or Forbidden if the caller may see it."""
    if may_boot(lease.project_id, lease.sharing, caller):
        return
    if not caller.is_admin and relation(caller, lease) is Access.PARENT:
        raise Forbidden(f"The lease {lease.id} is a sub-lease of another project, whose servers alone boot on it")
    if not caller.is_admin and relation(caller, lease) is not Access.NONE:
        raise Forbidden(
            f"The lease {lease.id} is shared with you, not with your project: no server of your project boots on it"
        )
    raise missing
