"""A host is cleaned after each lease: for its time, by the operator's command, and never handed over before."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.status import EventKind, LeaseStatus
from climate.service.host_operations import cleaning, failures, recycling
from climate.service.journal import consistency_check
from tests.conftest import ADMIN, Clock
from tests.service.host_operations.test_recycling import following, in_cloud, place_of, pool_of
from tests.service.lease_actions import get, held, hosts_wanted, make, run_due


def at_once(act: Callable[[], None]) -> None:
    act()


@pytest.fixture
def hook(tmp_path: Path) -> Path:
    """A command that writes down for which hosts it was run, and fails as long as there is a file `dirt`."""
    path = tmp_path / "clean"
    path.write_text(
        f'#!/bin/sh\nprintf "%s %s\\n" "$1" "$2" >> "{tmp_path}/log"\ntest -z "$HOME" || exit 9\n'
        f'test ! -e "{tmp_path}/dirt" || exit 3\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    return path


@pytest.fixture
def hooked(climate: Climate, hook: Path) -> Climate:
    return replace(climate, settings=replace(climate.settings, cleaning_hook=f"{hook} 'with soap'"))


def ended(climate: Climate, clock: Clock, count: int = 1) -> Lease:
    lease = make(climate, clock, hosts_wanted(count), start=0, hours=1)
    run_due(climate)
    clock.forward(hours=1)
    run_due(climate)
    assert {pool_of(climate, number) for number in held(lease)} == {Pool.CLEANING}
    return lease


def logged(hook: Path) -> list[str]:
    return (hook.parent / "log").read_text(encoding="utf-8").splitlines()


def test_the_time_has_to_pass(cleaned: Climate, clock: Clock, cloud: FakeCloud, engine: Engine) -> None:
    (number,) = held(ended(cleaned, clock))
    assert in_cloud(cloud, number) == "cleaning"
    assert cleaning.run_round(cleaned) == 0
    clock.forward(minutes=10)
    assert cleaning.run_round(cleaned) == 1
    assert (pool_of(cleaned, number), in_cloud(cloud, number)) == (Pool.RESERVATION, "freepool")
    with engine.connect() as conn:
        assert conn.scalar(text("SELECT count(*) FROM allocations WHERE kind = 'cleaning'")) == 0
    assert consistency_check.differences(cleaned) == []


def test_the_hook_is_run_once_for_each_cleaning(hooked: Climate, clock: Clock, hook: Path) -> None:
    lease = ended(hooked, clock, 2)
    assert cleaning.run_round(hooked, at_once) == 0
    assert sorted(logged(hook)) == sorted(f"with soap h{number}" for number in held(lease))
    assert cleaning.run_round(hooked, at_once) == 2
    ended(hooked, clock, 8)
    cleaning.run_round(hooked, at_once)
    assert cleaning.run_round(hooked, at_once) == 8
    assert len(logged(hook)) == 10


def test_a_hook_that_takes_its_time_is_waited_for(hooked: Climate, clock: Clock) -> None:
    (number,) = held(ended(hooked, clock))
    lease = following(hooked, clock, number, minutes=1)
    work: list[Callable[[], None]] = []
    cleaning.run_round(hooked, work.append)
    assert len(work) == 1
    clock.forward(minutes=1)
    assert (cleaning.run_round(hooked, work.append), len(work)) == (0, 1)
    run_due(hooked)
    start = get(hooked, lease).event(EventKind.START)
    assert (start.status, start.attempts) == ("UNDONE", 0)
    assert "not ready yet: " in str(start.reason)
    work.pop()()
    assert cleaning.run_round(hooked, work.append) == 1
    clock.time = start.run_at
    run_due(hooked)
    assert get(hooked, lease).status is LeaseStatus.ACTIVE


def test_a_run_that_is_not_heard_of_is_repeated(hooked: Climate, clock: Clock) -> None:
    ended(hooked, clock)
    lost: list[Callable[[], None]] = []
    cleaning.run_round(hooked, lost.append)
    clock.forward(seconds=631)
    cleaning.run_round(hooked, at_once)
    assert cleaning.run_round(hooked, at_once) == 1


def test_a_hook_that_fails_is_tried_three_times_then_the_host_has_failed(
    hooked: Climate, clock: Clock, cloud: FakeCloud, hook: Path, engine: Engine
) -> None:
    (number,) = held(ended(hooked, clock))
    (hook.parent / "dirt").touch()
    for tries in (1, 2, 3):
        for _ in range(3):
            assert cleaning.run_round(hooked, at_once) == 0
        assert (len(logged(hook)), pool_of(hooked, number)) == (tries, Pool.CLEANING)
        clock.forward(seconds=30)
    assert cleaning.run_round(hooked, at_once) == 1
    place = place_of(hooked, number)
    assert (place.pool, place.reason) == (Pool.FAILED, "not cleaned: the hook ended with status 3")
    assert in_cloud(cloud, number) == "failed"
    with engine.connect() as conn:
        (told,) = conn.execute(
            text("SELECT project_id, host, message FROM notices WHERE kind = 'host.cleaning_failed'")
        )
    assert (told.project_id, told.host) == (None, number)
    assert "status 3" in told.message
    assert consistency_check.differences(hooked) == []


def test_a_host_that_cannot_be_cleaned_waits_for_an_admin_and_is_then_cleaned(
    hooked: Climate, clock: Clock, cloud: FakeCloud, hook: Path
) -> None:
    """The cloud thinks that it is well all the time: it knows nothing of what is left on it."""
    (number,) = held(ended(hooked, clock))
    (hook.parent / "dirt").touch()
    for _ in range(60):
        cleaning.run_round(hooked, at_once)
        failures.check(hooked)
        recycling.run_round(hooked)
        clock.forward(seconds=30)
    assert (pool_of(hooked, number), len(logged(hook))) == (Pool.FAILED, 3)
    (hook.parent / "dirt").unlink()
    failures.heal(hooked, ADMIN, str(number))
    assert (recycling.run_round(hooked), pool_of(hooked, number)) == (1, Pool.CLEANING)
    cleaning.run_round(hooked, at_once)
    assert (cleaning.run_round(hooked, at_once), len(logged(hook))) == (1, 4)
    assert pool_of(hooked, number) is Pool.RESERVATION


def test_a_hook_that_fails_once_only_does_no_harm(hooked: Climate, clock: Clock, hook: Path) -> None:
    ended(hooked, clock)
    (hook.parent / "dirt").touch()
    cleaning.run_round(hooked, at_once)
    (hook.parent / "dirt").unlink()
    clock.forward(seconds=30)
    cleaning.run_round(hooked, at_once)
    assert cleaning.run_round(hooked, at_once) == 1


def test_in_the_background(hooked: Climate, clock: Clock, hook: Path) -> None:
    """The round does not wait; the host goes home in a later one."""
    ended(hooked, clock)
    assert cleaning.run_round(hooked) == 0
    for thread in threading.enumerate():
        if thread.name == "cleaning":
            thread.join(30)
    assert cleaning.run_round(hooked) == 1
    assert len(logged(hook)) == 1
