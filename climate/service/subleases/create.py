"""Creation of a sub-lease: hosts of a lease, the parent, are promised to another project for a part of its time.

The holds of the parent end when the hosts are to be taken, and those of the sub-lease begin then. Both are recorded in
one transaction, under the locks of the parent and of the hosts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Connection

from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, NotEnoughHosts
from climate.domain.events import event_transitions
from climate.domain.events.event_transitions import Times
from climate.domain.facts import Fact, Hold, PlannedReservation
from climate.domain.hosts.pools import BOOKABLE, HostPlace, OnEnd
from climate.domain.lease import Lease, Reservation, fold
from climate.domain.period import Period
from climate.domain.planning.preemption import is_preemptible
from climate.domain.policy import Caller, require
from climate.domain.sharing import sublease
from climate.domain.sharing.sharing import Access, Sharing, refusal
from climate.domain.sharing.sublease_facts import HostsSublet, ParentLease, SubletHostsTaken
from climate.domain.status import LeaseStatus
from climate.plugin import ResourceRequest
from climate.service.events import host_power_on, unbegun_claims
from climate.service.hosts.lease_transitions import lead
from climate.service.leases import leases, reservation_aggregates, shortages
from climate.service.leases.leases import LeaseRequest, scope
from climate.service.notifications import delivery, lease_events
from climate.service.preemption.lease_shortening import power_events
from climate.service.sharing import access, accounts
from climate.service.transaction import run
from climate.store import idempotency, locks
from climate.store.hosts import pool_membership, pool_settings
from climate.store.hosts.hosts import HOST_TYPE
from climate.store.idempotency import Key
from climate.store.leases import event_claims
from climate.store.leases import leases as stored

ASKED = ("hypervisor_properties", "resource_properties")
"""Requirements that hosts of the sub-lease have from the parent, for the case that one has to be replaced."""


@dataclass(frozen=True, slots=True)
class SubleaseOrder:
    """Request for a sub-lease. No `start` means now; the hosts are a number, or names."""

    name: str
    project_id: str
    """Project that gets the hosts."""
    end: datetime
    start: datetime | None = None
    user_id: str = ""
    """User to whom the sub-lease belongs; empty for the caller."""
    before_end: datetime | None = None
    hosts: int = 0
    host_names: tuple[str, ...] = ()
    reservation_id: UUID | None = None
    """Reservation of the parent that has the hosts; needed only if several have whole hosts."""
    terms: Mapping[str, object] = field(default_factory=dict)
    """Terms of the reservation, such as `on_end`."""

    @property
    def count(self) -> int:
        return len(self.host_names) or self.hosts


def create(
    climate: Climate,
    caller: Caller,
    parent_id: UUID,
    order: SubleaseOrder,
    key: Key | None = None,
    *,
    dry_run: bool = False,
) -> Lease:
    """Record the sub-lease, and promise hosts of the parent to it, or do neither.

    Raises Conflict if the parent cannot give the hosts, and Busy while a worker runs one of its events.
    """
    require(caller, "leases:post")
    accounts.check(climate, Sharing((order.project_id,), (order.user_id,) if order.user_id else ()), "sub-lease")
    parent = run(climate, access.get, caller, parent_id)
    if (relation := access.relation(caller, parent)) is not Access.OWNER:
        raise refusal(relation)
    in_use = _in_use(climate, parent)
    request = _Request(caller, parent_id, order, key, in_use)
    lease, is_new = run(climate, _create, climate, request, keep=not dry_run)
    return reservation_aggregates.announce(climate, lease, new=True) if is_new and not dry_run else lease


def _in_use(climate: Climate, parent: Lease) -> frozenset[str]:
    """Return the names of the parent's hosts with servers, as the cloud has them."""
    own = (r for r in parent.reservations if r.resource_type == HOST_TYPE and event_transitions.started(parent))
    with shortages.of_the_cloud():
        servers = [server for r in own for server in climate.cloud.servers_in(str(r.id))]
    return frozenset(server.host for server in servers if server.host)


@dataclass(frozen=True, slots=True)
class _Request:
    caller: Caller
    parent_id: UUID
    order: SubleaseOrder
    key: Key | None
    in_use: frozenset[str]
    """Names of hosts that have servers of the parent."""


def _create(conn: Connection, climate: Climate, request: _Request) -> tuple[Lease, bool]:
    """Record the sub-lease; return it, and false if an earlier request with the same key has created it."""
    caller, key = request.caller, request.key
    if key and (known := idempotency.earlier(conn, caller, key)):
        return leases.at_version(conn, climate, caller, UUID(known), 1), False
    parent = stored.get(conn, request.parent_id, project_id=scope(caller), lock=True)
    now = climate.now(conn)
    parent = unbegun_claims.take_back(conn, caller, parent, now)
    case = _checked(climate, parent, request, now)
    lease = _recorded(conn, climate, case, _chosen(conn, climate, case))
    if key:
        idempotency.remember(conn, caller, key, str(lease.id), lease.created_at)
    return lease, True


@dataclass(frozen=True, slots=True)
class _Case:
    """Locked parent, the request, and the times that follow from both."""

    parent: Lease
    reservation: Reservation
    request: _Request
    now: datetime
    period: Period
    take_at: datetime
    """Time at which the hosts are taken from the parent."""
    is_soon: bool
    """Set if there is no time to warn the parent's owner."""
    notice: timedelta

    @property
    def order(self) -> SubleaseOrder:
        return self.request.order

    @property
    def until(self) -> datetime:
        """Return the end of the parent's holds."""
        return max(hold.during.end for hold in self.reservation.holds)

    @property
    def receiver(self) -> Caller:
        """Return the owner of the sub-lease; the terms that the caller may choose are the caller's."""
        user_id = self.order.user_id or self.request.caller.user_id
        return replace(self.request.caller, project_id=self.order.project_id, user_id=user_id)


def _checked(climate: Climate, parent: Lease, request: _Request, now: datetime) -> _Case:
    """Return the case. Raise the refusals that follow from the parent and from the dates alone."""
    order = request.order
    refuse_parent(parent, order.project_id, now)
    if order.terms.get("on_end") == OnEnd.RELEASE:
        raise InvalidInput("on_end: hosts of a sub-lease return to its parent, so choose terminate or recycle")
    event_transitions.refuse_while_running(parent)
    reservation = _reservation(parent, order)
    period = leases.period_of(LeaseRequest(order.name, order.start, order.end), now, climate)
    if period.start < parent.period.start or period.end > parent.period.end:
        raise InvalidInput(
            f"The sub-lease must lie within its parent, {parent.period.start:%Y-%m-%d %H:%M:%S} to "
            f"{parent.period.end:%Y-%m-%d %H:%M:%S} UTC: choose start_date and end_date in that time"
        )
    notice = timedelta(seconds=climate.settings.preemption_notice)
    take_at = max(period.start - lead(climate.settings), parent.period.start, now)
    is_soon = event_transitions.started(parent) and take_at < now + notice
    return _Case(parent, reservation, request, now, period, take_at, is_soon, notice)


def refuse_parent(parent: Lease, project_id: str, now: datetime) -> None:
    """Raise Conflict or InvalidInput for a lease of which no sub-lease can be made for that project."""
    if parent.project_id == project_id:
        raise InvalidInput(f"project_id: the project {project_id} has the hosts already, with the parent lease")
    if parent.parent:
        raise InvalidInput(f"The lease {parent.id} is a sub-lease itself: its hosts cannot be given on")
    if parent.series_id:
        raise InvalidInput(f"The lease {parent.id} is an occurrence of a series: only single leases have sub-leases")
    if parent.parts:
        raise InvalidInput(f"The lease {parent.id} has parts in child zones or cells: such leases have no sub-leases")
    if parent.held or parent.waits:
        state = "held and not confirmed" if parent.held else "in the waiting list"
        raise Conflict(f"The lease {parent.id} is {state}: wait until it has its hosts for good")
    if parent.status is LeaseStatus.ERROR or event_transitions.is_ending(parent, now) or parent.period.end <= now:
        raise Conflict(f"The lease {parent.id} is {parent.status}: only pending and active leases have sub-leases")


def _reservation(parent: Lease, order: SubleaseOrder) -> Reservation:
    """Return the reservation that gives the hosts."""
    whole = [r for r in parent.reservations if r.resource_type == HOST_TYPE]
    if order.reservation_id is not None:
        whole = [r for r in whole if r.id == order.reservation_id]
    if not whole:
        raise InvalidInput(
            f"The lease {parent.id} has no such reservation of type {HOST_TYPE}: sub-leases are made of whole hosts"
        )
    if len(whole) > 1:
        raise InvalidInput(
            f"The lease {parent.id} has {len(whole)} reservations of type {HOST_TYPE}: name one as reservation_id"
        )
    if is_preemptible(whole[0].spec):
        raise InvalidInput(f"The lease {parent.id} is preemptible: its hosts are not its own to give")
    return whole[0]


def _chosen(conn: Connection, climate: Climate, case: _Case) -> PlannedReservation:
    """Return the reservation of the sub-lease, with hosts of the parent; their rows are locked."""
    order, r = case.order, case.reservation
    locks.lock_host_allocation(conn)
    places = pool_membership.of(conn, r.hosts, lock=True)
    free = _candidates(climate, case, places)
    empty = [place for place in free if place.name not in case.request.in_use]
    usable = empty if case.is_soon or len(empty) >= order.count else free
    short = _too_few(case, len(free), len(empty))
    if len(usable) < order.count:
        raise short
    ask = _resource_request(conn, climate, case, tuple(place.host for place in usable))
    if ask.window.end > case.until:
        raise InvalidInput(
            "The sub-lease with its grace period must end no later than its parent with that of its own: "
            f"choose an earlier end_date than {case.period.end:%Y-%m-%d %H:%M:%S}, or a shorter grace_period"
        )
    try:
        got = climate.plugins[HOST_TYPE].reserve(conn, ask)
    except NotEnoughHosts:
        raise short from None
    if not {hold.host for hold in got.holds} <= set(ask.liked):
        raise short
    holds = tuple(Hold(hold.host, Period(case.take_at, case.until)) for hold in got.holds)
    return PlannedReservation(ask.reservation_id, HOST_TYPE, got.spec, holds=holds)


def _resource_request(conn: Connection, climate: Climate, case: _Case, usable: tuple[int, ...]) -> ResourceRequest:
    """Return the request for hosts of the parent, which count as free."""
    r, count = case.reservation, case.order.count
    terms = _terms(pool_settings.of(conn, climate.settings).of_a_lease)
    spec = {name: r.spec[name] for name in ASKED if name in r.spec}
    spec |= {"before_end": "default", "min": count, "max": count, **case.order.terms}
    return ResourceRequest(
        spec,
        case.period,
        case.receiver,
        climate.settings,
        patient=True,
        taken=tuple(set(r.hosts).difference(usable)),
        terms=terms,
        grace_of_lease=event_transitions.grace([{**terms, **spec}]),
        together=frozenset({r.id}),
        liked=usable,
        held_until=case.until,
    )


def _terms(usual: Mapping[str, object]) -> dict[str, object]:
    """Return the default terms: hosts are not released to the multi-tenant pool, because they return to the parent."""
    return {**usual, "on_end": OnEnd.RECYCLE} if usual.get("on_end") == OnEnd.RELEASE else dict(usual)


def _candidates(climate: Climate, case: _Case, places: Mapping[int, HostPlace]) -> list[HostPlace]:
    """Return the hosts that the parent can give: usable ones that it holds to its end, and as named."""
    kept, _ = sublease.split_by_pending(case.reservation.holds, case.reservation.sublets)
    own = {h.host for h in kept if h.during.start <= case.take_at and h.during.end == case.until}
    free = [place for place in places.values() if place.host in own and not place.removed and place.pool in BOOKABLE]
    if names := case.order.host_names:
        _check_names(climate, case, {place.name for place in places.values()})
        free = [place for place in free if place.name in names]
    return free


def _check_names(climate: Climate, case: _Case, known: Collection[str]) -> None:
    """Raise InvalidInput for names of hosts that the caller may not know, or that the parent does not have."""
    if climate.settings.lease_hosts == "nothing" and not case.request.caller.is_admin:
        raise InvalidInput(
            "host_names: owners do not learn the names of their hosts here, so give their number as hosts"
        )
    if unknown := sorted(set(case.order.host_names).difference(known)):
        raise InvalidInput(f"host_names: {unknown[0]} is no host of the lease {case.parent.id}")


def _too_few(case: _Case, free: int, empty: int) -> Conflict:
    """Return the refusal for too few hosts."""
    wanted = (
        f"Not enough hosts for the sub-lease: {case.order.count} wanted, the lease {case.parent.id} can give {free}"
    )
    if case.is_soon and empty < free:
        warned = case.now + case.notice
        return Conflict(
            f"{wanted}, of which {free - empty} have servers. Delete these servers, or start the sub-lease later than "
            f"{warned:%Y-%m-%d %H:%M:%S} UTC, so that the owner is warned"
        )
    return Conflict(f"{wanted}; others are in sub-leases, have failed, or are not for that project")


def _recorded(conn: Connection, climate: Climate, case: _Case, planned: PlannedReservation) -> Lease:
    """Record both leases: the parent first, because the hosts are free for the sub-lease only then."""
    parent, now, order = case.parent, case.now, case.order
    times = Times(
        case.period,
        event_transitions.before_end_time(case.period, order.before_end, leases.usual_before_end(climate)),
        prepare=host_power_on.due_at(conn, climate.settings, case.period, _hosts(planned.holds), now),
        grace=event_transitions.grace([planned.spec]),
    )
    wish = LeaseRequest(order.name, case.period.start, case.period.end)
    made = leases.created(case.receiver, wish, times, now, (planned,))
    of = ParentLease(parent.id, case.reservation.id, parent.project_id, case.until)
    made = replace(made, parent=of)
    facts = _given(case, made.lease_id, planned.holds)
    after = fold(facts, parent)
    facts = [*power_events(conn, climate, parent, after, now), *facts]
    after = stored.record(conn, case.request.caller, parent, *facts)
    pools = reservation_aggregates.aggregate_insert(conn, climate, fold([made]))
    lease = stored.record(conn, case.request.caller, None, made, pools=pools)
    own = (lease_events.of(climate.settings, parent, after), lease_events.of(climate.settings, None, lease))
    delivery.notify(conn, now, *(notice for notices in own for notice in notices))
    if case.is_soon:
        event_claims.wake_rounds(conn)
    leases.wake_if_soon(conn, climate, lease, now)
    return lease


def _given(case: _Case, sublease_id: UUID, holds: Collection[Hold]) -> list[Fact]:
    """Return the facts of the parent. It loses the hosts at once if it has not begun and would not have them before."""
    r, now = case.reservation, case.now
    warn_at = max(now, case.take_at - case.notice)
    fact = HostsSublet(r.id, now, sublease_id, _hosts(holds), case.take_at, warn_at, case.take_at)
    if event_transitions.started(case.parent) or case.take_at > case.parent.period.start:
        return [fact]
    return [fact, SubletHostsTaken(r.id, now, sublease_id)]


def _hosts(holds: Collection[Hold]) -> tuple[int, ...]:
    return tuple(sorted(hold.host for hold in holds))
