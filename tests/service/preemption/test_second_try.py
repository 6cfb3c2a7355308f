"""The second try: only where hosts are short, and preemptible leases hold some."""

from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.errors import NotEnoughHosts
from climate.domain.period import Period
from climate.service.preemption import second_try
from climate.service.preemption.second_try import FewerHosts, Turn
from tests.conftest import Clock
from tests.service.lease_actions import held, hosts_wanted
from tests.service.preemption.steps import ALL, ordinary, spare


def turns(climate: Climate, during: Period, refused: set[Turn]) -> list[Turn]:
    """The tries that are made if those `refused` lack hosts."""
    made: list[Turn] = []

    def attempt(turn: Turn) -> None:
        made.append(turn)
        if turn in refused:
            raise NotEnoughHosts

    try:
        second_try.if_short(climate, during, attempt)
    except NotEnoughHosts:
        made.append(Turn.ONLY)
    return made


def test_there_is_no_second_try_without_need_or_hope(climate: Climate, clock: Clock) -> None:
    hour = Period(clock.time, clock.time + timedelta(hours=1))
    assert turns(climate, hour, set()) == [Turn.FIRST]
    assert turns(climate, hour, {Turn.FIRST}) == [Turn.FIRST, Turn.ONLY]
    spare(climate, clock, start=0.5)
    assert turns(climate, hour, {Turn.FIRST}) == [Turn.FIRST, Turn.SECOND]
    before = Period(clock.time - timedelta(hours=2), clock.time - timedelta(hours=1))
    assert turns(climate, before, {Turn.FIRST}) == [Turn.FIRST, Turn.ONLY]


def test_fewer_hosts_than_wanted_are_refused_only_for_preemptible_leases(climate: Climate, clock: Clock) -> None:
    lease = ordinary(climate, clock, hosts_wanted(1, ALL + 1))
    assert len(held(lease)) == ALL
    planned = [(r.spec, r.holds) for r in lease.reservations]
    with climate.engine.connect() as conn:
        second_try.refuse_fewer(conn, lease.period, planned)
    spare(climate, clock, start=3)
    later = Period(clock.time, clock.time + timedelta(hours=4))
    with climate.engine.connect() as conn, pytest.raises(FewerHosts):
        second_try.refuse_fewer(conn, later, planned)
