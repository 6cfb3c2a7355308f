"""Sub-leases at the same moment as others, and as changes of the parent: one of them wins."""

from collections import Counter

from climate.context import Climate
from climate.domain.errors import Busy, Conflict, NotFound
from climate.domain.lease import Lease
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.leases import Listing
from climate.service.leases.update import Changes
from climate.service.subleases import round as subleases
from tests.conftest import ADMIN, MEMBER, Clock
from tests.scenarios.test_races import at_once, clashes, nothing_is_promised_twice
from tests.service.lease_actions import get, held, hosts_wanted, run_due
from tests.service.subleases.steps import give, parent, tick

__all__ = ["clashes"]

RIVALS = 6


def kinds_of(results: list[object]) -> Counter[type]:
    return Counter(type(one) for one in results)


def test_one_of_several_gets_a_host(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    long = parent(climate, clock)
    run_due(climate)
    host = min(held(long))
    results = at_once(*[lambda: give(climate, clock, long, host_names=(f"h{host}",))] * RIVALS)
    assert kinds_of(results) == {Lease: 1, Conflict: RIVALS - 1}
    results = at_once(*[lambda: give(climate, clock, long, hosts=1)] * RIVALS)
    given = [one for one in results if isinstance(one, Lease)]
    assert (len(given), len({host for one in given for host in held(one)})) == (3, 3)
    tick(climate, clock)
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []
    assert clashes == []


def test_a_sub_lease_and_an_end_of_the_parent(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    for shorten in (
        lambda long: update.update(
            climate, MEMBER, long.id, Changes(end=long.period.start + (long.period.end - long.period.start) / 24)
        ),
        lambda long: leases.delete(climate, MEMBER, long.id),
    ):
        long = parent(climate, clock, hosts_wanted(2))
        run_due(climate)
        made, changed = at_once(
            lambda long=long: give(climate, clock, long, start=2), lambda long=long, do=shorten: do(long)
        )
        assert isinstance(made, Lease) != isinstance(changed, Lease), (made, changed)
        tick(climate, clock)
        assert nothing_is_promised_twice(climate)
        assert consistency_check.differences(climate) == []
    assert clashes == []


def test_gifts_ends_prolongations_and_rounds(climate: Climate, clock: Clock, clashes: list[str]) -> None:
    long = parent(climate, clock, hosts_wanted(4), hours=200)
    run_due(climate)

    def churn() -> None:
        for _ in range(3):
            try:
                one = give(climate, clock, long, hosts=1, start=1)
                leases.delete(climate, MEMBER, one.id)
            except (Conflict, Busy, NotFound):
                continue

    def prolong() -> None:
        for _ in range(3):
            try:
                present = get(climate, long)
                update.update(
                    climate,
                    MEMBER,
                    long.id,
                    Changes(end=present.period.end + (present.period.end - present.period.start) / 200),
                )
            except (Conflict, Busy):
                continue

    def rounds() -> None:
        for _ in range(8):
            subleases.run_round(climate)

    at_once(churn, churn, prolong, rounds)
    tick(climate, clock)
    after = get(climate, long)
    open_ones = [one for one in leases.listed(climate, ADMIN, Listing()) if one.parent]
    assert {one.sublease_id for one in after.reservations[0].sublets} == {one.id for one in open_ones}
    assert len(held(after)) == 4
    assert len({hold.during.end for hold in after.reservations[0].holds if not open_ones}) <= 1
    assert nothing_is_promised_twice(climate)
    assert consistency_check.differences(climate) == []
    assert clashes == []
