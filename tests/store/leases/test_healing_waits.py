"""Releases wake what waits for resources, in one statement."""

from datetime import timedelta

from climate.context import Climate
from climate.domain.period import Period
from climate.store.leases import healing_waits
from tests.conftest import Clock
from tests.scenarios.test_statement_counts import counted
from tests.service.lease_actions import make


def test_a_release_has_all_leases_healed_that_were_tried_in_vain(climate: Climate, clock: Clock) -> None:
    ids = sorted(make(climate, clock).id for _ in range(3))
    with climate.engine.begin() as conn:
        healing_waits.note(conn, clock.time, [], ids)
        assert healing_waits.due(conn, ids, clock.time, 5) == ([], False)
        healing_waits.wake(conn, [Period(clock.time, clock.time + timedelta(hours=1))])
        assert healing_waits.due(conn, ids, clock.time, 2) == (ids[:2], True)
        healing_waits.note(conn, clock.time, ids[:1], [])
        assert healing_waits.due(conn, ids[1:], clock.time, 5) == (ids[1:], False)


def test_a_release_for_which_nobody_waits_is_one_statement(climate: Climate) -> None:
    with counted(climate.engine) as seen, climate.engine.begin() as conn:
        healing_waits.wake(conn)
    assert len(seen) == 1
