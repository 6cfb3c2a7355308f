"""What owners of leases do: ask for hosts and for room, change their minds, boot servers and delete them."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, multiple, rule

from climate.cloud import Refused
from climate.domain.errors import ClimateError, NotEnoughHosts
from climate.domain.hosts.pools import BOOKABLE, MULTI_TENANT, HostPlace, Pool
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.planning.preemption import is_preemptible
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.conftest import MEMBER
from tests.machine.deployment import Site
from tests.machine.host_invariants import CAPACITY, only
from tests.machine.world import HOSTS

MINUTES = st.sampled_from([1, 5, 10, 30, 60, 90])
STARTS = st.sampled_from([0, 0, 5, 15, 30, 90])
GRACES = st.sampled_from([0, 0, 60, 600])
ONE_HOST = st.sampled_from(HOSTS)
SIZES = st.sampled_from([(1, 1024, 10), (2, 4096, 20), (3, 512, 60)])

known = Bundle("known")


def _size(wanted: Mapping[str, Any]) -> tuple[int, int, int]:
    return wanted["vcpus"], wanted["memory_mb"], wanted["disk_gb"]


def _several(least: int, more: int) -> dict[str, Any]:
    return {"min": least, "max": least + more, "hypervisor_properties": ""}


def _one(host: str) -> dict[str, Any]:
    return {"min": 1, "max": 1, "hypervisor_properties": only(host)}


def _hosts(numbers: dict[str, Any], terms: dict[str, Any]) -> dict[str, Any]:
    return {"resource_type": "physical:host", "before_end": "snapshot", **numbers, **terms}


def _room(size: tuple[int, int, int], amount: int, affinity: bool | None, grace: int) -> dict[str, Any]:
    sizes = dict(zip(("vcpus", "memory_mb", "disk_gb"), size, strict=True))
    rest = {"amount": amount, "affinity": affinity, "grace_period": grace, "resource_properties": ""}
    return {"resource_type": "virtual:instance", **sizes, **rest}


TERMS = st.fixed_dictionaries(
    {
        "on_end": st.sampled_from(["terminate", "recycle", "release"]),
        "grace_period": GRACES,
        "recycle_deadline": st.sampled_from(["terminate", "move"]),
    }
)
WANTED_HOSTS = st.builds(
    _hosts, st.builds(_one, ONE_HOST) | st.builds(_several, st.integers(1, 2), st.integers(0, 1)), TERMS
)
WANTED_ROOM = st.builds(_room, SIZES, st.integers(1, 6), st.sampled_from([None, None, True, False]), GRACES)


class Users:
    """Rules of a state machine over `site`."""

    site: Site

    @rule(target=known, start=STARTS, length=MINUTES, wanted=WANTED_HOSTS, used=st.booleans())
    def ask_for_hosts(self, start: int, length: int, wanted: Mapping[str, Any], used: bool) -> object:
        begin = self._now() + timedelta(minutes=start)
        end = begin + timedelta(minutes=length)
        free = self._free(begin, end + self._after(wanted, cleaned=True), wanted["hypervisor_properties"])
        try:
            return self._order("hosts", Period(begin, end), wanted, used)
        except NotEnoughHosts:
            assert free < wanted["min"], "refused although enough hosts are free"
            return multiple()

    @rule(target=known, start=STARTS, length=MINUTES, wanted=WANTED_HOSTS, used=st.booleans())
    def ask_for_spare_hosts(self, start: int, length: int, wanted: Mapping[str, Any], used: bool) -> object:
        """A preemptible lease has what nobody holds, and takes nothing from anybody."""
        begin = self._now() + timedelta(minutes=start)
        held = [(t.host, t.start, t.end, t.reservation_id) for t in self.site.taken()]
        try:
            lease = self._order(
                "spare", Period(begin, begin + timedelta(minutes=length)), {**wanted, "preemptible": True}, used=False
            )
        except NotEnoughHosts:
            return multiple()
        assert set(held) <= {(t.host, t.start, t.end, t.reservation_id) for t in self.site.taken()}
        if used:
            self.site.run_all()
            self._boot(lease)
        return lease

    @rule(target=known, start=STARTS, length=MINUTES, wanted=WANTED_ROOM, used=st.booleans())
    def ask_for_room(self, start: int, length: int, wanted: Mapping[str, Any], used: bool) -> object:
        begin = self._now() + timedelta(minutes=start)
        end = begin + timedelta(minutes=length)
        slots = [self._slots(host, begin, end + self._after(wanted), _size(wanted)) for host in HOSTS]
        try:
            return self._order("room", Period(begin, end), wanted, used)
        except NotEnoughHosts:
            most = {None: sum(slots), True: max(slots), False: sum(bool(free) for free in slots)}
            assert most[wanted["affinity"]] < wanted["amount"], "refused although there is room"
            return multiple()

    @rule(lease=known, start=st.none() | MINUTES, end=st.none() | MINUTES, name=st.none() | st.just("other"))
    def move_dates(self, lease: Lease, start: int | None, end: int | None, name: str | None) -> None:
        begin, until = (None if m is None else self._now() + timedelta(minutes=m) for m in (start, end))
        self._change(lease, Changes(name=name, start=begin, end=until))

    @rule(lease=known, more=MINUTES)
    def prolong(self, lease: Lease, more: int) -> None:
        self._change(lease, Changes(end=self.site.get(lease).period.end + timedelta(minutes=more)))

    @rule(lease=known, least=st.integers(1, 3), more=st.integers(0, 1))
    def change_size(self, lease: Lease, least: int, more: int) -> None:
        r = lease.reservations[0]
        size = {"min": least, "max": least + more} if "max" in r.spec else {"amount": least}
        self._change(lease, Changes(reservations=[{"id": str(r.id), **size}]))

    @rule(lease=known, on_end=st.sampled_from(["terminate", "recycle", "release"]), grace=GRACES)
    def change_terms(self, lease: Lease, on_end: str, grace: int) -> None:
        r = lease.reservations[0]
        terms = {"on_end": on_end, "grace_period": grace} if "max" in r.spec else {"grace_period": grace}
        self._change(lease, Changes(reservations=[{"id": str(r.id), **terms}]))

    @rule(lease=known)
    def end_now(self, lease: Lease) -> None:
        self._change(lease, Changes(end_now=True))

    @rule(lease=known)
    def delete(self, lease: Lease) -> None:
        self._try(lambda: leases.delete(self.site.climate, MEMBER, lease.id))

    def _order(self, name: str, period: Period, wanted: Mapping[str, Any], used: bool) -> Lease:
        """A lease; with `used` also its start, where that is now, and servers of its owner."""
        lease = leases.create(self.site.climate, MEMBER, LeaseRequest(name, period.start, period.end, None, [wanted]))
        if used:
            self.site.run_all()
            self._boot(lease)
        return lease

    @rule(lease=known)
    def boot(self, lease: Lease) -> None:
        self._boot(lease)

    def _boot(self, lease: Lease) -> None:
        """A server on each host that is lent to the lease, or in each slot."""
        cloud, r = self.site.cloud, lease.reservations[0]
        pool = str(r.id)
        boots: list[tuple[Callable[..., str], str, str]] = [
            (cloud.boot_granted, pool, host) for host in (cloud.granted[pool].slots if pool in cloud.granted else ())
        ]
        boots += [(cloud.boot, "project", host) for host in HOSTS if cloud.pool_of(host) == pool]
        for verb, *args in boots:
            try:
                self.site.booted[verb(*args)] = r.id
            except Refused:
                continue

    @rule(lease=known)
    def delete_servers(self, lease: Lease) -> None:
        """Its owner has done with them."""
        for server, number in self.site.booted.items():
            if number == lease.reservations[0].id:
                self.site.cloud.lose(server)

    @rule(host=ONE_HOST)
    def boot_anywhere(self, host: str) -> None:
        """A server that is in no lease: the cloud puts it on a host that nobody keeps."""
        try:
            server = self.site.cloud.boot("other-project", host)
        except Refused:
            return
        self.site.ordinary.add(server)
        place = self.site.place_of(host)
        assert place.home is MULTI_TENANT or place.pool is Pool.LENT, f"{place} is kept, and somebody boots there"

    @rule()
    def ordinary_servers_go(self) -> None:
        while self.site.ordinary:
            self.site.cloud.lose(self.site.ordinary.pop())

    # Means.

    def _now(self) -> datetime:
        return self.site.clock.time.replace(microsecond=0)

    def _change(self, lease: Lease, wanted: Changes) -> None:
        self._try(lambda: update.update(self.site.climate, MEMBER, lease.id, wanted))

    def _try(self, act: Callable[[], object]) -> None:
        """It may be refused, but then it changes nothing."""
        before = self.site.fingerprint()
        try:
            act()
        except ClimateError:
            assert self.site.fingerprint() == before

    def _after(self, wanted: Mapping[str, Any], *, cleaned: bool = False) -> timedelta:
        """How long hosts are kept after the lease."""
        return timedelta(seconds=wanted["grace_period"] + (self.site.settings.cleaning_time if cleaned else 0))

    def _free(self, start: datetime, end: datetime, properties: str) -> int:
        """How many hosts nobody holds in that time, are up and in order: by the rows, and by hand."""
        return self._untaken(self._sound(), start, end, properties)

    def _free_by_then(self, start: datetime, end: datetime, properties: str) -> int:
        """How many hosts nobody holds in that time, be they lent, off, recycling or in maintenance until then."""
        places = self.site.places().values()
        kept = [(place.host, place.name) for place in places if place.reservable and place.pool in BOOKABLE]
        return self._untaken(kept, start, end, properties)

    def _untaken(self, hosts: Iterable[tuple[int, str]], start: datetime, end: datetime, properties: str) -> int:
        taken = {t.host for t in self.site.taken() if not t.preemptible and t.start < end and start < t.end}
        return sum(properties in ("", only(name)) and number not in taken for number, name in hosts)

    def _slots(self, host: str, start: datetime, end: datetime, size: tuple[int, int, int]) -> int:
        """How many servers of a size fit on a host throughout that time: looked at wherever something begins."""
        mine = {number for number, name in self._sound() if name == host}
        taken = [t for t in self.site.taken() if t.host in mine and t.start < end and start < t.end]
        taken = [t for t in taken if not t.preemptible]
        if not mine or any(not t.slots for t in taken):
            return 0
        moments = {start, *(t.start for t in taken if t.start > start)}
        sums = [[sum(t.size[part] for t in taken if t.at(moment)) for part in range(3)] for moment in moments]
        return min((CAPACITY[part] - used[part]) // size[part] for used in sums for part in range(3))

    def _sound(self) -> list[tuple[int, str]]:
        return [
            (place.host, place.name)
            for place in self.site.places().values()
            if self._is_there(place) and place.reservable and place.on
        ]

    def _is_there(self, place: HostPlace) -> bool:
        """Whether nobody has the host, or only a preemptible lease."""
        spare = [r for lease in self.site.leases() for r in lease.reservations if is_preemptible(r.spec)]
        return place.pool is Pool.RESERVATION or (
            place.pool is Pool.LENT and place.reservation_id in {r.id for r in spare}
        )
