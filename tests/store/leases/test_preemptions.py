"""Preemptible leases that the round chooses: each has its turn, whatever becomes of the others."""

from climate.context import Climate
from climate.store.leases import preemptions
from tests.conftest import Clock
from tests.service.lease_actions import hosts_wanted, run_due
from tests.service.preemption.steps import ALL, ordinary, spare

ROUNDS = 60
"""Choices of one of two leases: both are among them, but for one time in 10^17."""


def test_each_lease_with_due_hosts_has_its_turn(climate: Climate, clock: Clock) -> None:
    both = [spare(climate, clock, ALL // 2), spare(climate, clock, ALL // 2)]
    run_due(climate)
    start = ordinary(climate, clock, hosts_wanted(ALL), start=1).period.start
    with climate.engine.connect() as conn:
        assert preemptions.due(conn, clock.time, 2) == []
        chosen = {lease_id for _ in range(ROUNDS) for lease_id in preemptions.due(conn, start, 1)}
    assert chosen == {one.id for one in both}
