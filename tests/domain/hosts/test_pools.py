"""Where a host is, the moves between pools, and those that a lease brings about."""

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from climate.domain import facts
from climate.domain.errors import IllegalMove
from climate.domain.events import event_transitions
from climate.domain.facts import HostMoved, HostSwitched
from climate.domain.hosts import pools
from climate.domain.hosts.pools import (
    CLEANING,
    FAILED,
    LENT,
    MAINTENANCE,
    MOVES,
    MULTI_TENANT,
    RECYCLING,
    RESERVATION,
    HostPlace,
    OnEnd,
    Pool,
    Transition,
)
from climate.domain.lease import Lease
from tests.domain.lease_factory import HOUR, NOON, PERIOD, after, claimed, done, lease

STREAM = UUID(int=1)
RESERVATION_ID = UUID(int=7)
MINUTES = timedelta(minutes=10)


def place(pool: Pool = LENT, number: int = 1, reservation: UUID | None = RESERVATION_ID) -> HostPlace:
    return HostPlace(number, STREAM, f"h{number}", pool, NOON, reservation_id=reservation)


def transition(before: Lease, after: Lease) -> Transition:
    return Transition(before, after, PERIOD.end, token=5)


def moves(what: Transition, *places: HostPlace, **more: Any) -> dict[int, HostMoved]:
    known = {one.host: one for one in places}
    return {place.host: fact for place, fact in pools.follow(what, known, **{"cleaning": None, **more})}


def started(**terms: object) -> Transition:
    running = claimed(lease(**terms), "start_lease", PERIOD.start)
    return transition(
        running,
        after(running, *event_transitions.finish(running, running.event(event_transitions.EventKind.START).id, NOON)),
    )


def ended(**terms: object) -> Transition:
    running = claimed(started(**terms).after, "end_lease", PERIOD.end, 2)
    return transition(
        running,
        after(running, *event_transitions.finish(running, running.event(event_transitions.EventKind.END).id, NOON)),
    )


@pytest.mark.parametrize(("pool", "to"), list(product(Pool, Pool)))
def test_a_host_makes_only_the_moves_of_the_table(pool: Pool, to: Pool) -> None:
    fact = HostMoved(NOON, to, "because", reservation_id=RESERVATION_ID)
    if to is pool or to in MOVES[pool]:
        moved = pools.evolve(STREAM, place(pool), pools.move(place(pool), fact))
        assert (moved.pool, moved.since, moved.reason, moved.version) == (to, NOON, "because", 2)
    else:
        with pytest.raises(IllegalMove, match=f"is in the pool {pool} and cannot go to {to}"):
            pools.move(place(pool), fact)


def test_every_pool_is_reached_and_left() -> None:
    assert set(MOVES) == set(Pool)
    reached = {pool for targets in MOVES.values() for pool in targets}
    assert reached == set(Pool)
    assert all(RESERVATION in MOVES[pool] for pool in Pool if pool is not RESERVATION), "there is a way back from each"


def test_a_host_remembers_where_it_belongs_and_its_highest_token() -> None:
    one = pools.fold([facts.HostEnrolled(1, NOON, "h1", MULTI_TENANT)], STREAM)
    assert (one.home, one.version, one.pool) == (MULTI_TENANT, 1, MULTI_TENANT)
    steps = [HostMoved(NOON, MAINTENANCE, "", 9), HostSwitched(NOON, False, ""), HostMoved(NOON, RECYCLING, "", 3)]
    one = pools.fold(steps, STREAM, one)
    assert (one.home, one.token, one.on, one.pool) == (MULTI_TENANT, 9, False, RECYCLING)
    one = pools.fold([HostMoved(NOON, RESERVATION, ""), facts.HostOpened(NOON, False, "noisy")], STREAM, one)
    assert (one.home, one.reservable, one.pool) == (RESERVATION, False, RESERVATION)
    assert pools.fold([facts.HostRemoved(NOON)], STREAM, one).removed


def test_nothing_before_it_was_enrolled() -> None:
    with pytest.raises(ValueError, match="before HostEnrolled"):
        pools.fold([facts.HostRemoved(NOON)], STREAM)
    with pytest.raises(ValueError, match="nothing has happened"):
        pools.fold([], STREAM)


def test_a_start_lends_what_is_in_the_reservation_pool() -> None:
    (fact,) = moves(started(), place(RESERVATION)).values()
    assert (fact.pool, fact.token, fact.reservation_id) == (LENT, 5, RESERVATION_ID)
    assert all(not moves(started(), place(pool)) for pool in Pool if pool is not RESERVATION)


@pytest.mark.parametrize("cleaning", [None, MINUTES])
@pytest.mark.parametrize("promised", [frozenset(), frozenset({1})])
@pytest.mark.parametrize("policy", OnEnd)
def test_where_hosts_go_at_the_end(policy: OnEnd, promised: frozenset[int], cleaning: timedelta | None) -> None:
    (fact,) = moves(ended(on_end=policy), place(), cleaning=cleaning, promised=promised).values()
    expected = {
        OnEnd.TERMINATE: CLEANING if cleaning else RESERVATION,
        OnEnd.RECYCLE: RECYCLING,
        OnEnd.RELEASE: RECYCLING if promised else MULTI_TENANT,
    }[policy]
    assert fact.pool == expected == pools.after(policy, cleaning is not None, bool(promised))
    assert fact.until == (PERIOD.end + MINUTES if expected is CLEANING else None)
    assert fact.reservation_id == (RESERVATION_ID if expected in (CLEANING, RECYCLING) else None)


@pytest.mark.parametrize("pool", [RESERVATION, MULTI_TENANT, RECYCLING, CLEANING, MAINTENANCE, FAILED])
def test_an_end_leaves_hosts_alone_that_are_elsewhere(pool: Pool) -> None:
    assert moves(ended(), place(pool)) == {}


def test_an_end_leaves_hosts_alone_that_are_allocated_to_others() -> None:
    assert moves(ended(), place(LENT, reservation=UUID(int=8))) == {}


def test_an_end_that_was_not_carried_out_moves_nothing() -> None:
    known = lease()
    assert moves(transition(known, after(known, *event_transitions.delete(known, NOON))), place()) == {}
    running = claimed(started().after, "end_lease", PERIOD.end, 2)
    failed = after(
        running, event_transitions.fail(running, running.event(event_transitions.EventKind.END).id, NOON, "broken")
    )
    assert moves(transition(running, failed), place()) == {}


@pytest.mark.parametrize(("policy", "until"), [(OnEnd.TERMINATE, PERIOD.end), (OnEnd.RECYCLE, None)])
def test_a_host_that_a_running_lease_does_without_recycles(policy: OnEnd, until: object) -> None:
    running = started(on_end=policy).after
    held = facts.Hold(2, PERIOD)
    changed = after(running, facts.ReservationChanged(NOON, RESERVATION_ID, running.reservations[0].spec, (held,)))
    (fact,) = moves(transition(running, changed), place(), place(RESERVATION, 2)).values()
    assert (fact.pool, fact.until) == (RECYCLING, until)


def test_shared_hosts_are_not_allocated() -> None:
    what = started()
    shared = tuple(replace(hold, slots=2) for hold in what.after.reservations[0].holds)
    changed = replace(what.after, reservations=(replace(what.after.reservations[0], holds=shared),))
    assert moves(replace(what, after=changed), place(RESERVATION)) == {}


@pytest.mark.parametrize("word", ["delete", "create_image, delete", None, ""])
def test_words_of_other_resources_are_no_policy(word: str | None) -> None:
    assert pools.on_end(lease(on_end=word).reservations[0]) is OnEnd.TERMINATE


def test_a_lease_goes_through_grace_without_moving_a_host() -> None:
    running = started(grace_period=600).after
    closed = done(running, "close_lease", PERIOD.end, 2)
    assert moves(transition(running, closed), place()) == {}
    assert closed.in_grace(PERIOD.end + MINUTES / 2)
    assert not closed.in_grace(PERIOD.end + MINUTES)
    assert not closed.in_grace(PERIOD.end - HOUR)
