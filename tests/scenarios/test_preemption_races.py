"""Many ordinary leases at once over hosts of preemptible ones: nothing overlaps, nobody loses more than is needed."""

from collections.abc import Callable
from typing import Any

import pytest

from climate.context import Climate
from climate.domain.errors import NotEnoughHosts
from climate.domain.lease import Lease
from climate.domain.planning.preemption_facts import HostPreempted, PreemptionPlanned
from climate.domain.status import HoldState
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from climate.service.preemption import round as preemption
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.scenarios.test_races import WRITERS, at_once, clashes, kinds_of, nothing_is_promised_twice
from tests.service.lease_actions import facts, get, held, hosts_wanted, run_due
from tests.service.preemption.steps import ALL, ordinary, spare, tick

__all__ = ["clashes"]


def losses(climate: Climate, lease: Lease) -> list[tuple[int, Any]]:
    """Host and taker of all that a lease loses or has lost, the last plan of each host."""
    known: dict[int, Any] = {}
    for fact in facts(climate, lease):
        if isinstance(fact, PreemptionPlanned | HostPreempted):
            known[fact.host] = fact.needed_by
    return sorted(known.items())


def taken_by(*takers: Lease) -> list[tuple[int, Any]]:
    return sorted((host, one.id) for one in takers for host in held(one))


@pytest.mark.parametrize("running", [True, False])
def test_each_loses_exactly_what_is_taken(climate: Climate, clock: Clock, clashes: list[str], *, running: bool) -> None:
    start = 0 if running else 1
    spares = [spare(climate, clock, 1, 2, start=start) for _ in range(ALL // 2)]
    if running:
        run_due(climate)
    results = at_once(*[lambda: ordinary(climate, clock, start=2, hours=1)] * WRITERS)
    takers = [one for one in results if isinstance(one, Lease)]
    assert len(takers) == ALL, "refused although the preemptible leases hold enough"
    assert kinds_of(results) == {Lease, NotEnoughHosts}
    assert sorted(pair for lease in spares for pair in losses(climate, lease)) == taken_by(*takers)
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []
    assert clashes == []


def test_bookings_updates_rounds_and_deletions(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    spares = [spare(climate, clock, 1, 4, hours=6) for _ in range(2)]
    run_due(climate)
    grower = ordinary(climate, clock, start=5, hours=1)

    def churn() -> None:
        for _ in range(4):
            try:
                lease = ordinary(climate, clock, hosts_wanted(2), start=2, hours=1)
            except NotEnoughHosts:
                continue
            leases.delete(climate, STRANGER, lease.id)

    def grow() -> None:
        for more in range(2, ALL):
            change = {"id": str(grower.reservations[0].id), "min": 1, "max": more}
            update.update(climate, STRANGER, grower.id, Changes(reservations=[change]))

    acts: list[Callable[[], object]] = [churn, churn, churn, grow]
    acts += [lambda: [preemption.run_round(climate) for _ in range(8)]] * 2
    acts += [
        lambda lease=lease: update.update(climate, MEMBER, lease.id, Changes(name="still here")) for lease in spares
    ]
    assert {type(one) for one in at_once(*acts)} <= {type(None), list, Lease}
    assert len(held(get(climate, grower))) == ALL - 1, "an ordinary lease has fewer hosts for a preemptible one"
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []
    assert clashes == []


def test_two_rounds_warn_and_take_once(climate: Climate, clock: Clock) -> None:
    lease = spare(climate, clock, 1, ALL)
    run_due(climate)
    ordinary(climate, clock, hosts_wanted(3))
    for _ in range(2):
        at_once(*[lambda: preemption.run_round(climate)] * 8)
        clock.forward(seconds=climate.settings.preemption_notice)
    said = [type(fact).__name__ for fact in facts(climate, lease)]
    assert (said.count("PreemptionWarned"), said.count("HostPreempted")) == (1, 3)
    assert len(held(get(climate, lease))) == ALL - 3


def test_all_comes_to_rest(climate: Climate, clock: Clock) -> None:
    for _ in range(4):
        spare(climate, clock, 1, 2, hours=1)
    run_due(climate)
    at_once(*[lambda: ordinary(climate, clock, start=0.2, hours=0.5)] * ALL)
    for minutes in (5, 2, 2, 2, 2, 2, 40, 30):
        clock.forward(minutes=minutes)
        tick(climate, clock)
    ended = leases.listed(climate, ADMIN, leases.Listing())
    assert {lease.hold_state for lease in ended} == {HoldState.RELEASED}
    started = [lease for lease in ended if lease.name == "ordinary"]
    assert [lease.event(kind).outcome for lease in started for kind in ("start_lease",)] == ["OK"] * ALL
    assert consistency_check.differences(climate) == []
