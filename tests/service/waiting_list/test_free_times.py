"""Free times for many leases of the waiting list: the same answers as single attempts, from few reads."""

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.availability.demands import Demand, WholeDemand
from climate.domain.availability.gaps import ListedGaps, Steps
from climate.domain.errors import TooComplex
from climate.domain.period import Period
from climate.domain.planning.waiting_list import Entry
from climate.service.waiting_list.free_times import FreeTimes, can_wait, requested
from tests.conftest import Clock
from tests.scenarios.test_statement_counts import counted
from tests.service.lease_actions import get, held, hosts_wanted, make
from tests.service.waiting_list.test_entries import ALL, queue
from tests.service.waiting_list.test_round import entry_of

HOUR = timedelta(hours=1)
NOBODY: frozenset[int] = frozenset()


class Unsearchable(WholeDemand):
    """A demand whose search takes too many steps."""

    def counts(self, length: int) -> Steps:
        raise TooComplex


@dataclass
class Searched(FreeTimes):
    """Free times of leases whose search takes too many steps."""

    def demands(self, entry: Entry) -> list[Demand]:
        return [Unsearchable("hosts", 1, 1, 0, ListedGaps({1: []}))]


@pytest.fixture
def waiting(climate: Climate, clock: Clock) -> Entry:
    """A lease for five hosts that waits: all are taken for four hours, six of them for ten."""
    make(climate, clock, hosts_wanted(6), start=0, hours=10)
    make(climate, clock, hosts_wanted(2), start=0, hours=4)
    return entry_of(queue(climate, clock, hosts_wanted(5), start=1, until=20))


def times(climate: Climate, clock: Clock, same: bool = True) -> FreeTimes:
    return FreeTimes(climate, clock.time + 30 * HOUR, same)


def test_fits_and_the_first_period(climate: Climate, clock: Clock, waiting: Entry) -> None:
    known = times(climate, clock)
    assert not known.fits(waiting, waiting.asked, NOBODY)
    later = Period(clock.time + 10 * HOUR, clock.time + 12 * HOUR)
    assert known.fits(waiting, later, NOBODY)
    assert known.first(waiting, clock.time, waiting.reach, NOBODY) == later
    assert known.first(waiting, clock.time, clock.time + 11 * HOUR, NOBODY) is None


def test_hosts_that_are_kept_do_not_count(climate: Climate, clock: Clock, waiting: Entry) -> None:
    known = times(climate, clock)
    later = Period(clock.time + 10 * HOUR, clock.time + 12 * HOUR)
    assert known.fits(waiting, later, frozenset({1, 2, 3}))
    assert not known.fits(waiting, later, frozenset({1, 2, 3, 4}))
    assert known.first(waiting, clock.time, waiting.reach, frozenset({1, 2, 3, 4})) is None
    assert known.free(waiting, later) == frozenset(range(1, ALL + 1))
    assert len(known.free(waiting, Period(clock.time + 5 * HOUR, clock.time + 6 * HOUR))) == 2


def test_one_read_serves_leases_that_want_the_same_in_other_numbers(
    climate: Climate, clock: Clock, waiting: Entry
) -> None:
    known = times(climate, clock)
    later = Period(clock.time + 10 * HOUR, clock.time + 12 * HOUR)
    known.fits(waiting, later, NOBODY)
    with counted(climate.engine) as seen:
        for least in (1, 4, ALL, ALL + 1):
            spec = {**waiting.reservations[0][1], "min": least, "max": least}
            one = replace(waiting, reservations=[("physical:host", spec)])
            assert known.fits(one, later, NOBODY) == (least <= ALL)
    assert seen == []
    known.forget()
    with counted(climate.engine) as seen:
        known.fits(waiting, later, NOBODY)
    assert seen


def test_a_type_without_a_plugin_never_fits(climate: Climate, clock: Clock, waiting: Entry) -> None:
    lone = FreeTimes(Climate(climate.engine, climate.cloud, {}, climate.settings, clock), clock.time + HOUR)
    assert (lone.demands(waiting), lone.fits(waiting, waiting.asked, NOBODY)) == (None, False)
    assert (lone.first(waiting, clock.time, waiting.reach, NOBODY), lone.free(waiting, waiting.asked)) == (
        None,
        NOBODY,
    )


def test_a_search_with_too_many_steps_finds_nothing(climate: Climate, clock: Clock, waiting: Entry) -> None:
    hard = Searched(climate, clock.time + HOUR)
    assert not hard.fits(waiting, waiting.asked, NOBODY)
    assert hard.first(waiting, clock.time, waiting.reach, NOBODY) is None


def test_the_request_of_a_lease_keeps_the_ids_of_its_reservations(climate: Climate, clock: Clock) -> None:
    make(climate, clock, hosts_wanted(ALL))
    lease = get(climate, queue(climate, clock, hosts_wanted(2)))
    [part] = requested(climate, lease)
    assert (part.id, part.spec["min"], can_wait(part), held(lease)) == (lease.reservations[0].id, 2, True, set())
