"""Many ask for the last slots at once: none is promised twice, and nobody is refused without need."""

from functools import partial

import pytest
from sqlalchemy import Engine

from climate.context import Climate
from climate.domain.errors import NotEnoughHosts
from climate.domain.lease import Lease
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from tests.conftest import MEMBER, Clock
from tests.scenarios.test_races import WRITERS, at_once, clashes, kinds_of
from tests.scenarios.test_statement_counts import cost
from tests.service.capacity_factory import change, hours, overruns, servers, slots, total
from tests.service.lease_actions import hosts_wanted, make

__all__ = ["clashes"]

VCPUS = 4 * 4 + 4 * 8


def of(results: list[object]) -> list[Lease]:
    return [one for one in results if isinstance(one, Lease)]


def test_the_last_slots(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    make(climate, clock, servers(VCPUS - 5))
    results = at_once(*[lambda: make(climate, clock, servers(1))] * WRITERS)
    assert len(of(results)) == 5
    assert kinds_of(results) == {Lease, NotEnoughHosts}
    assert overruns(climate) == []
    assert clashes == []
    assert consistency_check.differences(climate) == []


@pytest.mark.parametrize(("amount", "affinity"), [(3, None), (5, None), (2, True), (4, False)])
def test_all_are_given_out(climate: Climate, clock: Clock, amount: int, affinity: bool | None) -> None:
    wanted = partial(make, climate, clock, servers(amount, affinity=affinity))
    results = at_once(*[wanted] * WRITERS)
    assert overruns(climate) == []
    assert kinds_of(results) <= {Lease, NotEnoughHosts}
    if NotEnoughHosts in kinds_of(results):
        with pytest.raises(NotEnoughHosts):
            wanted()
    assert total(of(results)) == min(WRITERS * amount, VCPUS // amount * amount) or affinity is False


def test_whole_hosts_and_slots(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    rooms = [lambda: make(climate, clock, servers(7))] * 8
    whole = [lambda: make(climate, clock, hosts_wanted(2))] * 8
    results = at_once(*(act for pair in zip(rooms, whole, strict=True) for act in pair))
    assert kinds_of(results) <= {Lease, NotEnoughHosts}
    assert overruns(climate) == []
    assert clashes == []
    assert consistency_check.differences(climate) == []


def test_growing_and_prolonging_against_booking(climate: Climate, clock: Clock) -> None:
    first = [make(climate, clock, servers(6), start=1, hours=1) for _ in range(4)]
    later = [make(climate, clock, servers(6), start=2, hours=1) for _ in range(4)]
    acts = [
        *[partial(change, climate, lease, amount=12) for lease in first],
        *[
            partial(update.update, climate, MEMBER, lease.id, Changes(end=hours(lease.period.end, 1)))
            for lease in first
        ],
        *[partial(change, climate, lease, amount=8) for lease in later],
        *[lambda: make(climate, clock, servers(5), start=1, hours=2)] * 4,
    ]
    assert kinds_of(at_once(*acts)) <= {Lease, NotEnoughHosts}
    assert overruns(climate) == []
    assert consistency_check.differences(climate) == []


def test_what_is_given_up_is_booked_again_without_end(climate: Climate, clock: Clock) -> None:
    def churn(amount: int) -> set[type]:
        seen: set[type] = set()
        for _ in range(10):
            try:
                leases.delete(climate, MEMBER, make(climate, clock, servers(amount)).id)
            except NotEnoughHosts:
                seen.add(NotEnoughHosts)
        return seen

    results = at_once(*[partial(churn, amount) for amount in (1, 7, 13, 20, 30, 48)])
    assert all(isinstance(one, set) for one in results), results
    assert slots(make(climate, clock, servers(VCPUS))).keys() == set(range(1, 9))


def test_how_many_statements(climate: Climate, clock: Clock, engine: Engine) -> None:
    one = cost(engine, lambda: make(climate, clock, servers(1), start=1, hours=1))
    assert one <= 8
    assert cost(engine, lambda: make(climate, clock, servers(40), start=2, hours=1)) == one
    assert cost(engine, lambda: make(climate, clock, servers(8, affinity=False), start=3, hours=1)) == one
    for place in range(20):
        make(climate, clock, servers(2), start=1 + place / 10, hours=0.1)
    assert cost(engine, lambda: make(climate, clock, servers(7), start=1, hours=1)) == one

    few = make(climate, clock, servers(1), start=9, hours=1)
    many = make(climate, clock, servers(30), start=20, hours=1)
    changed = cost(engine, lambda: change(climate, few, amount=2))
    assert cost(engine, lambda: change(climate, many, amount=40)) == changed

    def refused() -> None:
        with pytest.raises(NotEnoughHosts):
            make(climate, clock, servers(99), start=9, hours=1)

    said = cost(engine, refused)
    for place in range(20):
        make(climate, clock, servers(1), start=9 + place / 30, hours=0.2)
    assert cost(engine, refused) == said <= 12
