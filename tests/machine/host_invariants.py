"""What must hold of hosts at any moment, after the rounds, and once all is quiet."""

from collections import defaultdict
from datetime import timedelta

from climate.cloud import FREEPOOL, KEPT
from climate.domain.facts import Hold
from climate.domain.hosts import pools
from climate.domain.hosts.pools import READY, HostPlace, OnEnd, Pool
from climate.domain.lease import Lease, Reservation
from climate.domain.status import DONE, EventKind, HoldState, LeaseStatus
from climate.plugin import CLOUD_POOLS
from climate.service.leases.reallocation import can_reallocate
from climate.store.hosts.maintenance import ACTIVE
from tests.machine.deployment import Site, Taken
from tests.machine.invariants import count, every_lease_is_over, the_engine_is_sound
from tests.machine.world import HOSTS

CAPACITY = (4, 8192, 100)
"""Of every host."""

AWAY = frozenset({Pool.FAILED, Pool.MAINTENANCE})


def only(host: str) -> str:
    """What an owner asks for who wants that very host."""
    return f'["==", "$hypervisor_hostname", "{host}"]'


def at_any_moment(site: Site) -> None:
    known, there = site.leases(), site.places()
    the_engine_is_sound(site, known)
    nothing_is_promised_twice(site.taken())
    no_promise_is_forgotten(known)
    lent_hosts_have_one_lease(site, known, there)
    kept_hosts_are_kept(site, there)
    for window in site.open_windows():
        assert window.state is not ACTIVE or there[window.host].pool not in READY, (window, there[window.host])
    for place in there.values():
        off = site.is_off(place.name) and place.name not in site.tampered
        assert not (off and place.pool is Pool.LENT), f"{place} is off"
    left = {server.id for server in site.cloud.servers()}
    assert site.ordinary <= left, "a server that is in no lease is gone"
    assert site.broken == []


def nothing_is_promised_twice(taken: list[Taken]) -> None:
    """At every moment at which something begins: one has the whole host, or those who share it fit on it."""
    by_host: dict[int, list[Taken]] = defaultdict(list)
    for one in taken:
        by_host[one.host].append(one)
    for promises in by_host.values():
        for moment in {one.start for one in promises}:
            there = [one for one in promises if one.at(moment)]
            assert len(there) == 1 or all(one.slots for one in there), f"promised twice: {there}"
            sums = [sum(parts) for parts in zip(*(one.size for one in there), strict=True)]
            assert all(used <= whole for used, whole in zip(sums, CAPACITY, strict=True)), f"too much: {there}"


def lent_hosts_have_one_lease(site: Site, known: list[Lease], there: dict[int, HostPlace]) -> None:
    """A host that is lent, in the books or in the cloud, is lent to a lease that is in force."""
    owners = {r.id: (lease, r) for lease in known for r in lease.reservations}
    for place in there.values():
        if place.pool is Pool.LENT:
            assert place.reservation_id is not None
            lease, r = owners[place.reservation_id]
            assert lease.hold_state_of(r) is HoldState.ACTIVE, f"{place} of a lease that is over: {lease}"
            assert place.host in r.hosts, f"{place} is not held by its lease: {lease}"
    in_force = {str(r.id) for lease, r in owners.values() if lease.hold_state_of(r) is HoldState.ACTIVE}
    for name in HOSTS:
        pool = site.cloud.pool_of(name)
        assert pool is None or pool in KEPT or pool in in_force, f"the cloud lends {name} to {pool}"


def kept_hosts_are_kept(site: Site, there: dict[int, HostPlace]) -> None:
    """The ordinary scheduler uses no host that is kept for leases, nor one that was."""
    for place in there.values():
        if site.cloud.pool_of(place.name) is None and place.pool is not Pool.MULTI_TENANT:
            follows = place.pool in AWAY and place.home is Pool.MULTI_TENANT
            released = place.pool is Pool.LENT and _is_being_released(site, place)
            assert follows or released, f"{place} is in no pool of the cloud"


def _is_being_released(site: Site, place: HostPlace) -> bool:
    assert place.reservation_id is not None
    lease = site.by_reservation()[place.reservation_id]
    return (
        lease.event(EventKind.END).token > 0 and pools.on_end(lease.reservation(place.reservation_id)) is OnEnd.RELEASE
    )


def after_the_rounds(site: Site) -> None:
    """With a cloud that does as it is asked: what a lease left to be deleted is gone, what it lacks is known."""
    there = {place.name: place for place in site.places().values()}
    owners = site.by_reservation()
    for server in site.cloud.servers():
        number = site.booted.get(server.id)
        if number is None or server.busy or there[server.host or ""].pool in AWAY:
            continue
        lease = owners[number]
        over = lease.event(EventKind.END).carried_out
        terminated = pools.on_end(lease.reservation(number)) is OnEnd.TERMINATE
        assert not (over and terminated), f"{server} has survived its lease {lease}"


def what_has_failed_is_known(site: Site) -> None:
    """After some rounds with a cloud that can be asked: it is as the books say, and leases know what they lack."""
    there = site.places()
    for place in there.values():
        well = site.is_up(place.name) and place.name not in site.cloud.unwell
        assert well or place.pool is not Pool.LENT, f"{place} is down"
        assert site.cloud.pool_of(place.name) == in_the_cloud(place), f"the cloud has {place} elsewhere"
    for lease in site.leases():
        waits = any(event.kind is EventKind.ADJUST and event.status is not DONE for event in lease.events)
        if lease.status is LeaseStatus.ACTIVE and not waits and not lease.in_grace(site.clock.time):
            for r in lease.reservations:
                lost = sum(hold.slots or 1 for hold in r.holds if not _is_had(there[hold.host], r, hold))
                assert lost <= r.missing, f"{lease} does not say what it lacks: {there}"


def _is_had(place: HostPlace, r: Reservation, hold: Hold) -> bool:
    lent = place.pool is Pool.LENT and place.reservation_id == r.id
    return place.pool is Pool.RESERVATION if hold.slots else lent


def in_the_cloud(place: HostPlace) -> str | None:
    """The pool of the cloud in which the host should be."""
    return str(place.reservation_id) if place.pool is Pool.LENT else CLOUD_POOLS[place.pool]


def no_promise_is_forgotten(known: list[Lease]) -> None:
    """What was promised is held, or said to be missing."""
    for lease in known:
        for r in lease.reservations if lease.hold_state is not HoldState.RELEASED and not lease.waits else ():
            held = sum(hold.slots or 1 for hold in r.holds)
            least = r.spec["min"] if "min" in r.spec else r.spec["amount"]
            assert held + r.missing >= least, f"{lease} holds less than {least}, and says nothing"


def when_all_is_quiet(site: Site) -> None:
    at_any_moment(site)
    every_lease_is_over(site)
    for place in site.places().values():
        assert place.pool is place.home, place
        assert place.name not in site.cloud.unwell
        assert place.on == site.is_up(place.name), f"{place} is not as it is said to be"
        assert site.cloud.pool_of(place.name) == in_the_cloud(place), place
    assert set(site.pools()) == {FREEPOOL, *(site.cloud.pool_of(name) for name in HOSTS)} - {None}
    assert site.cloud.granted == {}
    assert site.rows("SELECT * FROM allocations WHERE state <> 'released' AND kind <> 'cleaning'") == []
    assert count(site.engine, "SELECT count(*) FROM claims") == 0
    assert count(site.engine, "SELECT count(*) FROM hosts WHERE drift <> '' OR doubted_since IS NOT NULL") == 0
    assert count(site.engine, "SELECT count(*) FROM maintenance_windows WHERE state IN ('planned', 'active')") == 0


def what_is_missing_cannot_be_had(site: Site) -> None:
    """A lease lacks something only where no host is free for the rest of it."""
    now, taken = site.clock.time, site.taken()
    soon = timedelta(seconds=site.settings.healing_seconds)
    for lease in site.leases():
        for r in lease.reservations:
            if (
                not r.missing
                or "max" not in r.spec
                or not can_reallocate(lease, now)
                or lease.period.start > now + soon
            ):
                continue
            start = max(now, lease.period.start)
            until = lease.event(EventKind.END).due_at + timedelta(seconds=site.settings.cleaning_time)
            free = [
                place
                for place in site.places().values()
                if place.pool is Pool.RESERVATION
                and place.reservable
                and place.host not in r.hosts
                and r.spec["hypervisor_properties"] in ("", only(place.name))
                and not [t for t in taken if t.host == place.host and t.start < until and start < t.end]
            ]
            assert not free, f"{lease} lacks {r.missing} hosts, and there are {free}"
