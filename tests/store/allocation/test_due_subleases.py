"""Leases that the round over sub-leases chooses: each has its turn, whatever becomes of the others."""

from climate.context import Climate
from climate.service.leases import leases
from climate.store.allocation import due_subleases
from tests.conftest import STRANGER, Clock
from tests.service.lease_actions import run_due
from tests.service.subleases.steps import give, parent

ROUNDS = 60
"""Choices of one of two leases: both are among them, but for one time in 10^17."""


def test_each_parent_with_due_hosts_has_its_turn(climate: Climate, clock: Clock) -> None:
    both = [parent(climate, clock), parent(climate, clock)]
    run_due(climate)
    starts = [give(climate, clock, one, start=3).period.start for one in both]
    with climate.engine.connect() as conn:
        assert due_subleases.due(conn, clock.time, 2) == []
        chosen = {lease_id for _ in range(ROUNDS) for lease_id in due_subleases.due(conn, max(starts), 1)}
    assert chosen == {one.id for one in both}


def test_each_sub_lease_that_is_over_has_its_turn(climate: Climate, clock: Clock) -> None:
    long = parent(climate, clock)
    run_due(climate)
    both = [give(climate, clock, long, start=3), give(climate, clock, long, start=3)]
    for one in both:
        leases.delete(climate, STRANGER, one.id)
    with climate.engine.connect() as conn:
        chosen = {lease_id for _ in range(ROUNDS) for lease_id in due_subleases.to_return(conn, 1)}
    assert chosen == {one.id for one in both}
