"""What owners plan ahead: leases that may wait for their hosts, and series."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, multiple, rule

from climate.domain.errors import ClimateError, OccurrencesClash
from climate.domain.lease import Lease
from climate.domain.period import Period
from climate.domain.planning.preemption import is_preemptible
from climate.domain.planning.series import Make
from climate.domain.planning.waiting_list import Wait
from climate.service.leases.leases import LeaseRequest
from climate.service.series import change, create
from climate.service.series.change import SeriesChanges
from climate.service.series.create import SeriesOrder
from climate.service.waiting_list import entries
from climate.service.waiting_list import round as waiting_round
from tests.conftest import MEMBER
from tests.machine.user_rules import MINUTES, STARTS, WANTED_HOSTS, Users, known

series = Bundle("series")
SHIFTS = st.sampled_from([-90, -5, 0, 5, 60, 120])
HOURLY = f"FREQ=DAILY;BYHOUR={','.join(map(str, range(24)))}"
LONGEST = 45
"""Minutes of an occurrence, which with all that follows is over before the next one begins."""

TAKEN_FROM_OTHERS = """
    SELECT j.kind, j.stream FROM journal j JOIN reservations r ON r.lease_id = j.stream
    WHERE j.kind IN ('PreemptionPlanned', 'PreemptionWarned', 'HostPreempted', 'LeasePreempted')
    AND NOT coalesce((r.spec ->> 'preemptible')::boolean, false)
"""


class Planners(Users):
    """Rules of a state machine over `site`."""

    # The waiting list.

    @rule(
        target=known,
        start=STARTS,
        length=MINUTES,
        wanted=WANTED_HOSTS,
        until=st.none() | MINUTES,
        spare=st.sampled_from([False, False, True]),
    )
    def ask_and_wait(self, start: int, length: int, wanted: dict[str, Any], until: int | None, spare: bool) -> object:
        begin = self._now() + timedelta(minutes=start)
        end = begin + timedelta(minutes=length)
        free = self._free(begin, end + self._after(wanted, cleaned=True), wanted["hypervisor_properties"])
        wait = Wait(None if until is None else self._now() + timedelta(minutes=until))
        order = LeaseRequest("waits", begin, end, None, [{**wanted, "preemptible": spare}])
        try:
            lease = self._or_nothing(lambda: entries.create(self.site.climate, MEMBER, order, wait))
        except ClimateError:
            return multiple()
        assert not lease.waits or spare or free < wanted["min"], "waits although enough hosts are free"
        assert not lease.waits or not any(r.holds for r in lease.reservations)
        return lease

    @rule(goes_by=st.sampled_from([0, 61, 61]))
    def the_line_is_served(self, goes_by: int) -> None:
        """After a minute the whole of it, and then nobody waits who fits."""
        self.site.clock.forward(seconds=goes_by)
        waiting_round.run_round(self.site.climate)
        if not goes_by or self.site.settings.waiting_patience >= 0:
            return
        for lease in self.site.leases():
            if lease.waits and not lease.gone and not is_preemptible(lease.reservations[0].spec):
                self._does_not_fit(lease)

    def _does_not_fit(self, lease: Lease) -> None:
        now, spec = self.site.clock.time, lease.reservations[0].spec
        if lease.wait_until is None or lease.wait_until <= now:
            return
        moves = lease.wait_until > lease.period.start
        start = max(lease.period.start, now) if moves else lease.period.start
        end = start + (lease.period.end - lease.period.start)
        free = self._free(start, end + self._after(spec, cleaned=True), spec["hypervisor_properties"])
        assert free < spec["min"], f"{lease} waits although {free} hosts are free"

    # Series.

    @rule(
        target=series,
        start=STARTS,
        length=st.sampled_from([5, 30, LONGEST]),
        wanted=WANTED_HOSTS,
        count=st.integers(1, 3),
        make=st.sampled_from(Make),
    )
    def ask_for_a_series(self, start: int, length: int, wanted: dict[str, Any], count: int, make: Make) -> object:
        begin = self._now() + timedelta(minutes=start)
        periods = [self._hour(begin, hour, length) for hour in range(count)]
        free = [self._free_in(one, wanted) for one in periods]
        by_then = [self._free_in(one, wanted, by_then=True) for one in periods]
        order = SeriesOrder(
            LeaseRequest("s", begin, periods[0].end, None, [wanted]), f"{HOURLY};COUNT={count}", "UTC", make
        )
        try:
            outcome = self._or_nothing(lambda: create.create(self.site.climate, MEMBER, order))
        except OccurrencesClash:
            clashes = [one < wanted["min"] for one in free]
            assert any(clashes) if make is Make.ALL else all(clashes), "refused although enough hosts are free"
            return multiple()
        for one, there, later in zip(outcome.occurrences, free, by_then, strict=True):
            # Hosts that are lent, off or recycling now may be free by then. Their allocations say when.
            assert later >= wanted["min"] if one.lease else there < wanted["min"], one
        return outcome.series.id

    @rule(series_id=series, move=SHIFTS, extend=SHIFTS, since=st.none() | st.integers(0, 2))
    def change_a_series(self, series_id: UUID, move: int, extend: int, since: int | None) -> None:
        wish = SeriesChanges(
            None, timedelta(minutes=move), timedelta(minutes=extend), self._occurrence(series_id, since)
        )
        self._try(lambda: change.change(self.site.climate, MEMBER, series_id, wish))

    @rule(series_id=series, since=st.none() | st.integers(0, 2))
    def delete_a_series(self, series_id: UUID, since: int | None) -> None:
        chosen = self._occurrence(series_id, since)
        self._try(lambda: change.delete(self.site.climate, MEMBER, series_id, chosen))

    # Means.

    @staticmethod
    def _hour(begin: Any, hour: int, length: int) -> Period:
        start = begin + timedelta(hours=hour)
        return Period(start, start + timedelta(minutes=length))

    def _free_in(self, period: Period, wanted: Mapping[str, Any], *, by_then: bool = False) -> int:
        count = self._free_by_then if by_then else self._free
        return count(period.start, period.end + self._after(wanted, cleaned=True), wanted["hypervisor_properties"])

    def _occurrence(self, series_id: UUID, place: int | None) -> UUID | None:
        own: Sequence[Lease] = sorted(
            (one for one in self.site.leases() if one.series_id == series_id), key=lambda one: one.period.start
        )
        return None if place is None or place >= len(own) else own[place].id

    def _or_nothing(self, act: Callable[[], Any]) -> Any:
        before = self.site.fingerprint()
        try:
            return act()
        except ClimateError:
            assert self.site.fingerprint() == before
            raise


def ordinary_leases_keep_their_hosts(machine: Users) -> None:
    """Nothing is taken from a lease that is not preemptible."""
    assert machine.site.rows(TAKEN_FROM_OTHERS) == []
