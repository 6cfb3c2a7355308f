"""Servers of a failed host are made anew elsewhere, once its power supply says that it is off."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from climate.cloud import CloudError
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.power import OFF, ON, PowerFenced, Target
from climate.power.simulated import Trouble
from climate.service.host_operations import evacuation, failures
from climate.service.hosts import reconcile
from climate.service.power import power_saving, switching
from tests.conftest import Clock, cloud_host
from tests.service.fake_power import Machines, machines
from tests.service.hosts.test_reconcile import put

AUTOMATIC = {"evacuate_failed_hosts": True, "evacuate_after": 300, "idle_off_after": 0}


@pytest.fixture
def make_room(climate: Climate, clock: Clock, tmp_path: Path) -> Callable[..., Machines]:
    def make(*wired: int, **settings: Any) -> Machines:
        room = machines(climate, clock, tmp_path, **{**AUTOMATIC, **settings})
        room.wire(*wired)
        for number in (1, 2):
            put(room.climate, number, Pool.MULTI_TENANT)
        reconcile.correct(room.climate)
        room.cloud.set_hosts([*room.cloud.hosts.values(), cloud_host("n1")])
        return room

    return make


def failed(room: Machines, clock: Clock) -> str:
    """A server on h1, which has just failed; its machine still runs."""
    server = room.cloud.boot("p", "h1")
    room.cloud.unwell["h1"] = "its service is down"
    failures.check(room.climate)
    clock.forward(seconds=room.climate.settings.failed_after)
    failures.check(room.climate)
    assert room.place(1).pool is Pool.FAILED
    return server


def where(room: Machines, server: str) -> str | None:
    found = room.cloud.server(server)
    return found.host if found else None


def asked(room: Machines) -> list[str]:
    return [verb for verb, _ in room.cloud.calls if verb == "evacuate_server"]


def test_a_failed_host_is_off_before_its_servers_leave_it(make_room: Callable[..., Machines], clock: Clock) -> None:
    room = make_room(1)
    server = failed(room, clock)
    clock.forward(seconds=299)
    assert evacuation.run_round(room.climate) == 0
    assert room.state(1) == ON, "its time is not over"
    clock.forward(seconds=1)
    assert evacuation.run_round(room.climate) == 0
    assert (asked(room), where(room, server)) == ([], "h1"), "its supply has not said yet that it is off"
    assert room.state(1) == OFF
    assert evacuation.run_round(room.climate) == 1
    assert where(room, server) not in (None, "h1")
    assert "host.evacuated" in {kind for kind, _ in room.told()}
    assert evacuation.run_round(room.climate) == 0
    assert room.cloud.doubled() == []


def test_nothing_is_switched_off_where_the_setting_is_off(make_room: Callable[..., Machines], clock: Clock) -> None:
    room = make_room(1, evacuate_failed_hosts=False)
    server = failed(room, clock)
    clock.forward(hours=1)
    assert [evacuation.run_round(room.climate), evacuation.run_round(room.climate)] == [0, 0]
    assert (room.state(1), where(room, server)) == (ON, "h1")


def test_a_host_without_a_power_supply_is_left_to_an_operator(make_room: Callable[..., Machines], clock: Clock) -> None:
    room = make_room(2)
    server = failed(room, clock)
    clock.forward(hours=1)
    assert [evacuation.run_round(room.climate), evacuation.run_round(room.climate)] == [0, 0]
    assert (asked(room), where(room, server)) == ([], "h1")


def test_a_host_that_answers_goes_on_with_its_servers(make_room: Callable[..., Machines], clock: Clock) -> None:
    """It is disabled, say, or an administrator declared it failed."""
    room = make_room(1)
    server = failed(room, clock)
    room.cloud.unwell.clear()
    clock.forward(seconds=301)
    assert [evacuation.run_round(room.climate), evacuation.run_round(room.climate)] == [0, 0]
    assert (room.state(1), where(room, server)) == (ON, "h1")


@pytest.mark.parametrize("trouble", [Trouble.HANGS, Trouble.FAILS, Trouble.REFUSES])
def test_a_supply_that_cannot_cut_the_power_fences_nothing(
    make_room: Callable[..., Machines], clock: Clock, trouble: Trouble
) -> None:
    room = make_room(1)
    server = failed(room, clock)
    room.tell(1, trouble)
    clock.forward(seconds=301)
    assert [evacuation.run_round(room.climate), evacuation.run_round(room.climate)] == [0, 0]
    assert (asked(room), where(room, server)) == ([], "h1")


def test_one_servers_trouble_does_not_keep_the_others(make_room: Callable[..., Machines], clock: Clock) -> None:
    room = make_room(1)
    server = failed(room, clock)
    room.cloud.failures = {"evacuate_server": CloudError("away")}
    clock.forward(seconds=301)
    assert [evacuation.run_round(room.climate), evacuation.run_round(room.climate)] == [0, 0]
    room.cloud.failures = {}
    assert evacuation.run_round(room.climate) == 1
    assert where(room, server) != "h1"


def test_a_worker_that_is_late_switches_no_fenced_host_on(make_room: Callable[..., Machines], clock: Clock) -> None:
    room = make_room(1)
    server = failed(room, clock)
    (late,) = switching.wish(room.climate, {room.place(1): ON}, {1: room.supply(1)})
    clock.forward(seconds=301)
    evacuation.run_round(room.climate)
    assert room.state(1) == OFF
    fencing = room.supply(1)
    assert (fencing.wanted, fencing.token > late.supply.token) == (OFF, True)
    assert "a later decision" in switching.run_jobs(room.climate, [late])[0].error
    target = Target("h1", late.supply.settings, token=late.supply.token)
    with pytest.raises(PowerFenced, match="later decision"):
        room.driver.on(target)
    assert evacuation.run_round(room.climate) == 1
    assert (room.state(1), where(room, server) != "h1") == (OFF, True)
    assert room.supply(1).token == fencing.token, "a decision that stands is not made again"


def test_what_was_fenced_is_no_surprise(make_room: Callable[..., Machines], clock: Clock) -> None:
    room = make_room(1)
    failed(room, clock)
    clock.forward(seconds=301)
    evacuation.run_round(room.climate)
    power_saving.run_round(room.climate)
    assert room.place(1).on is False
    assert "power.switched" not in {kind for kind, _ in room.told()}
