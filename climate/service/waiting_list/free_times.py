"""Free times of what leases of the waiting list want, read once for many of them."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import Connection

from climate.context import Climate
from climate.database.connections import reading
from climate.domain.availability import search
from climate.domain.availability.demands import HOSTS, Demand, Horizon, SharedDemand, WholeDemand
from climate.domain.availability.gaps import Steps
from climate.domain.availability.search import Mode, Question
from climate.domain.errors import ClimateError, NotEnoughAddresses, NotEnoughHosts, NotEnoughStorage, TooComplex
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.planning.waiting_list import Entry
from climate.domain.policy import ADMIN, MEMBER, Caller
from climate.plugin import ResourceRequest
from climate.service.availability.question import ALMOST, Searchable, moment
from climate.service.leases import reservations
from climate.service.leases.joint_allocation import Unmatchable
from climate.service.leases.leases import LeaseRequest
from climate.store.allocation.free_times import seconds
from climate.store.hosts import pool_settings

REFUSALS = (NotEnoughHosts, NotEnoughAddresses, NotEnoughStorage, Unmatchable)
"""Refusals for which a lease waits."""

Reservations = Sequence[tuple[str, dict[str, object]]]
"""Resource type and request of each reservation."""

NUMBERS = ("min", "max")
"""Keys of a request of whole hosts that do not change which hosts match."""


def can_wait(item: reservations.Requested) -> bool:
    """Return whether the plugin knows the free times of such reservations; a server that sleeps takes nothing."""
    return hasattr(item.plugin, "demand") and "resource_id" not in item.spec


def is_ever_possible(
    climate: Climate, caller: Caller, order: LeaseRequest, requested: Sequence[reservations.Requested]
) -> bool:
    """Return whether enough resources match, whatever holds them."""
    with reading(climate.engine) as conn:
        now = climate.now(conn)
        asked = Period(order.start or now, order.end)
        demands = _demands(conn, climate, caller, requested, Horizon(asked, now))
    return all(demand is None or demand.is_possible for demand in demands)


def requested(climate: Climate, lease: Lease) -> list[reservations.Requested]:
    """Return the reservations of a lease that waits, as a request. Raise InvalidInput without one of the plugins."""
    specs = [{**reservation.spec, "resource_type": reservation.resource_type} for reservation in lease.reservations]
    found = reservations.requested(climate, specs)
    return [replace(item, id=one.id) for item, one in zip(found, lease.reservations, strict=True)]


def owner(project_id: str, user_id: str) -> Caller:
    """Return the owner of a lease as the requester; what may be asked for was checked when the lease was asked for."""
    return Caller(user_id, project_id, frozenset({MEMBER, ADMIN}))


def _demands(
    conn: Connection, climate: Climate, caller: Caller, requested: Sequence[reservations.Requested], horizon: Horizon
) -> list[Demand | None]:
    agreed = pool_settings.of(conn, climate.settings).of_a_lease
    common = reservations.with_terms(
        ResourceRequest({}, horizon.period, caller, climate.settings, soon=True), agreed, requested
    )
    return [
        cast("Searchable", item.plugin).demand(conn, replace(common, spec=item.spec), horizon) for item in requested
    ]


@dataclass
class FreeTimes:
    """Free times within a horizon; `forget` has them read again."""

    climate: Climate
    until: datetime
    is_same_for_all: bool = False
    """Set if all projects may use the same hosts, so that one read is for all of them."""
    known: dict[str, list[Demand] | None] = field(default_factory=dict)
    counts: dict[tuple[str, int], Steps] = field(default_factory=dict)
    texts: dict[int, tuple[Reservations, str]] = field(default_factory=dict)
    """By the identity of the reservations, which equal entries share."""

    def forget(self) -> None:
        """Read everything again at the next question, because something was given away."""
        self.known.clear()
        self.counts.clear()

    def fits(self, entry: Entry, period: Period, kept: Set[int]) -> bool:
        """Return whether the entry fits in the period, as far as is known; false if the search takes too long."""
        key = self._key(entry)
        known = self._known(entry, key)
        if known is None:
            return False
        start, end = seconds(period.start), seconds(period.end + ALMOST)
        only = known[0] if len(known) == 1 else None
        if not kept and isinstance(only, WholeDemand) and not only.must:
            return self._count(key, only, start, end - start) >= _least(only, entry.reservations[0][1])
        try:
            return search.matched(without(_all_sized(known, entry), kept), start, end) is not None
        except TooComplex:
            return False

    def _count(self, text: str, demand: WholeDemand, start: int, length: int) -> int:
        key = (text, length)
        if key not in self.counts:
            self.counts[key] = demand.counts(length)
        return self.counts[key].at(start)

    def free(self, entry: Entry, period: Period) -> frozenset[int]:
        """Return the hosts that the entry could use in the period."""
        start, end = seconds(period.start), seconds(period.end + ALMOST)
        found: set[int] = set()
        for demand in self.demands(entry) or ():
            if demand.kind == HOSTS:
                found.update(demand.free(start, end))
        return frozenset(found)

    def first(self, entry: Entry, now: datetime, latest: datetime, kept: Set[int]) -> Period | None:
        """Return the first period in which the entry fits, that ends at `latest` at the latest.

        None also if the search takes too long.
        """
        demands = self.demands(entry)
        if demands is None:
            return None
        whole = entry.period(now)
        length = int((whole.end - whole.start).total_seconds())
        span = (seconds(whole.start + ALMOST), seconds(latest))
        question = Question(without(demands, kept), length, [span], Mode.FIRST)
        try:
            found = next(search.candidates(question), None)
        except TooComplex:
            return None
        return Period(moment(found.start), moment(found.end)) if found else None

    def demands(self, entry: Entry) -> list[Demand] | None:
        """Return the demands of an entry; None if one of its plugins is not loaded, or refuses it."""
        found = self._known(entry, self._key(entry))
        return None if found is None else _all_sized(found, entry)

    def _known(self, entry: Entry, key: str) -> list[Demand] | None:
        """Return the demands of entries with that key, in any number of hosts."""
        if key not in self.known:
            self.known[key] = self._read(entry)
        return self.known[key]

    def _key(self, entry: Entry) -> str:
        wanted = entry.reservations
        if id(wanted) not in self.texts:
            self.texts[id(wanted)] = wanted, _text(wanted)
        _, text = self.texts[id(wanted)]
        return text if self.is_same_for_all else f"{entry.project_id} {text}"

    def _read(self, entry: Entry) -> list[Demand] | None:
        climate, caller = self.climate, owner(entry.project_id, entry.user_id)
        try:
            asked = reservations.requested(
                climate, [{**spec, "resource_type": kind} for kind, spec in entry.reservations]
            )
            with reading(climate.engine) as conn:
                now = climate.now(conn)
                horizon = Horizon(Period(now, max(self.until, now + timedelta(seconds=1))), now)
                found = _demands(conn, climate, caller, asked, horizon)
        except ClimateError:
            return None
        demands = [demand for demand in found if demand is not None]
        return demands if len(demands) == len(found) else None


def _text(reservations: Reservations) -> str:
    """Return a text that is the same for entries that want the same resources, in any number of hosts."""
    # The database has the keys of a spec in one order.
    return repr([(kind, [item for item in spec.items() if item[0] not in NUMBERS]) for kind, spec in reservations])


def _all_sized(demands: Sequence[Demand], entry: Entry) -> list[Demand]:
    return [_sized(demand, spec) for demand, (_, spec) in zip(demands, entry.reservations, strict=True)]


def _sized(demand: Demand, spec: Mapping[str, object]) -> Demand:
    """Return the demand with the number of hosts of this entry."""
    if isinstance(demand, WholeDemand) and _has_numbers(demand, spec):
        return replace(demand, least=int(str(spec["min"])), most=int(str(spec["max"])))
    return demand


def _least(demand: WholeDemand, spec: Mapping[str, object]) -> int:
    """Return the smallest number of hosts or addresses that is enough for this entry."""
    return int(str(spec["min"])) if _has_numbers(demand, spec) else demand.least


def _has_numbers(demand: WholeDemand, spec: Mapping[str, object]) -> bool:
    return demand.kind == HOSTS and "min" in spec


def without(demands: Sequence[Demand], kept: Set[int]) -> list[Demand]:
    """Return the demands without some hosts."""
    return [_without(demand, kept) if demand.kind == HOSTS and kept else demand for demand in demands]


def _without(demand: Demand, kept: Set[int]) -> Demand:
    if isinstance(demand, SharedDemand):
        left = {number: profile for number, profile in demand.profiles.items() if number not in kept}
        return replace(demand, profiles=left)
    return replace(demand, gaps=demand.gaps.without(kept))
