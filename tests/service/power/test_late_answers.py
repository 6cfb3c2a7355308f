"""A worker that is late switches no host: a later decision about its power stands."""

from pathlib import Path

import pytest

from climate.context import Climate
from climate.power import OFF, ON, Target
from climate.service.power import parallel_requests, power, switching
from climate.service.power.parallel_requests import Job
from climate.service.power.power import ManualRequest
from climate.store.hosts import pool_membership
from climate.store.hosts import power as supplies
from tests.conftest import ADMIN, Clock
from tests.service.fake_power import Machines, machines


@pytest.fixture
def room(climate: Climate, clock: Clock, tmp_path: Path) -> Machines:
    made = machines(climate, clock, tmp_path)
    made.wire(1, 2, boot_seconds=0, shutdown_seconds=0)
    return made


def decided(room: Machines, number: int, state: str) -> Job:
    """What a worker has decided, and not asked for yet."""
    with room.climate.engine.connect() as conn:
        place, supply = pool_membership.get(conn, number), supplies.of(conn, [number])[number]
    (job,) = switching.wish(room.climate, {place: state}, {number: supply})
    return job


def asked(room: Machines, number: int) -> list[str]:
    """The commands that the host's supply was given."""
    return [verb for verb, host in room.driver.calls if host == f"h{number}" and verb != "state"]


def test_each_decision_has_a_higher_token(room: Machines) -> None:
    first, second = decided(room, 1, OFF), decided(room, 1, ON)
    other = decided(room, 2, OFF)
    assert 0 < first.supply.token < second.supply.token < other.supply.token


def test_a_late_command_is_not_given_to_the_supply(room: Machines) -> None:
    late = decided(room, 1, OFF)
    power.switch(room.climate, ADMIN, "1", ManualRequest(on=True, force=True))
    room.driver.calls.clear()
    (seen,) = switching.run_jobs(room.climate, [late])
    assert (asked(room, 1), room.state(1)) == ([], ON)
    assert "a later decision" in seen.error
    assert power.get(room.climate, ADMIN, "1").supply.failures == 0


def test_a_command_for_other_settings_of_the_supply_is_late(room: Machines) -> None:
    late = decided(room, 1, OFF)
    room.wire(1, boot_seconds=1)
    assert switching.run_jobs(room.climate, [late])[0].error
    assert asked(room, 1) == []
    power.clear(room.climate, ADMIN, "2", force=True)
    gone = Job(late.place, supplies.Supply(2, "memory", {}, late.supply.created_at, token=99), OFF)
    assert switching.run_jobs(room.climate, [gone])[0].error


def test_the_last_decision_is_carried_out_with_its_token(room: Machines) -> None:
    job = decided(room, 1, OFF)
    assert [seen.error for seen in switching.run_jobs(room.climate, [job])] == [""]
    assert asked(room, 1) == ["off"]
    assert room.driver.machine("h1").token == job.supply.token
    again = Target("h1", job.supply.settings, token=job.supply.token - 1)
    with pytest.raises(Exception, match="later decision"):
        room.driver.on(again)


def test_jobs_that_only_look_read_no_decisions(room: Machines) -> None:
    job = decided(room, 1, OFF)
    seen = [one for part in parallel_requests.run_jobs(room.climate, [Job(job.place, job.supply)]) for one in part]
    assert [(one.state, one.error) for one in seen] == [(ON, "")]
