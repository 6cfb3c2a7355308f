"""The cleaning hook: no process of it outlives its run, and no other run or user gets the host before that."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import Engine, text

from climate.context import Climate
from climate.domain.errors import Conflict
from climate.domain.hosts.pools import Pool
from climate.processes import process_supervisor
from climate.service.host_operations import cleaning, cleaning_hook, failures, maintenance, pool_moves, recycling
from climate.service.host_operations.cleaning_hook import HookProcess, HookRun, Machine
from climate.service.hosts.move_checks import RequestedMove
from tests.conftest import ADMIN, Clock
from tests.service.host_operations.test_recycling import pool_of
from tests.service.lease_actions import held, hosts_wanted, make, run_due

PATIENCE = 60.0


def execute(command: str, seconds: float = PATIENCE, run_id: UUID | None = None) -> str:
    run = HookRun(command, "h1", seconds, run_id or uuid4(), 7)
    return cleaning_hook.execute(run, lambda process: True)


@pytest.mark.parametrize(
    ("command", "seconds", "said"),
    [
        ("/nowhere/clean", PATIENCE, "the hook cannot be run: FileNotFoundError"),
        ("sh -c 'exit 7' x", PATIENCE, "the hook ended with status 7"),
        ("sh -c 'kill -9 $$' x", PATIENCE, "the hook ended with status -9"),
        ("sleep 60 &&", PATIENCE, "the hook ended with status 1"),
        ("sh -c 'exec sleep 60' x", 0.1, "the hook took longer than 0.1 seconds"),
        ("'", PATIENCE, "the hook cannot be run: ValueError"),
        ("true", PATIENCE, ""),
    ],
)
def test_outcomes(command: str, seconds: float, said: str) -> None:
    assert execute(command, seconds) == said


def await_true(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.01)


@pytest.fixture
def wipe(tmp_path: Path) -> Iterator[Path]:
    """A hook that starts three processes and waits: a child, a daemon, and one without its environment.

    They write their numbers into the folder; whatever is left of them is killed after the test.
    """
    path = tmp_path / "wipe"
    body = "echo $$ > {folder}/$0.new; mv {folder}/$0.new {folder}/$0.pid; exec sleep 600"
    one = body.format(folder=tmp_path)
    path.write_text(
        "#!/bin/sh\n"
        f"sh -c '{one}' child &\n"
        f"setsid -f sh -c '{one}' daemon\n"
        f"setsid -f env -i PATH=/usr/bin:/bin sh -c '{one}' bare\n"
        f"for name in child daemon bare; do until test -e {tmp_path}/$name.pid; do sleep 0.01; done; done\n"
        'test "$1" = ends || exec sleep 600\n',
        encoding="utf-8",
    )
    path.chmod(0o755)
    yield path
    for pid in numbers(path):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def numbers(wipe: Path) -> list[int]:
    return [int(file.read_text()) for file in wipe.parent.glob("*.pid")]


def all_gone(wipe: Path) -> bool:
    found = numbers(wipe)
    return len(found) == 3 and not any(process_supervisor.started_at(pid) for pid in found)


def test_a_time_out_kills_all_that_the_hook_has_started(wipe: Path) -> None:
    started: list[HookProcess] = []
    run = HookRun(str(wipe), "h1", 3.0, uuid4(), 7)
    said = cleaning_hook.execute(run, lambda process: not started.append(process))  # type: ignore[func-returns-value]
    assert said == "the hook took longer than 3 seconds"
    assert all_gone(wipe)
    (process,) = started
    assert (process.machine, process_supervisor.started_at(process.pid)) == (str(cleaning_hook.this_machine()), "")


def test_nothing_is_left_of_a_hook_that_ends(wipe: Path) -> None:
    assert execute(f"{wipe} ends") == ""
    assert all_gone(wipe)


def test_a_run_that_cannot_be_recorded_does_not_start(tmp_path: Path) -> None:
    run = HookRun(f"touch {tmp_path}/ran", "h1", PATIENCE, uuid4(), 7)
    assert cleaning_hook.execute(run, lambda process: False) == cleaning_hook.UNRECORDED
    assert not (tmp_path / "ran").exists()


def test_a_hook_knows_its_run_and_a_number_that_grows(tmp_path: Path) -> None:
    """So that the operator's script can refuse what an earlier run of it still sends."""
    run_id = uuid4()
    assert execute(f"sh -c 'env > {tmp_path}/env' x", run_id=run_id) == ""
    seen = dict(line.split("=", 1) for line in (tmp_path / "env").read_text().splitlines())
    assert (seen["CLIMATE_RUN_ID"], seen["CLIMATE_CLEANING_TOKEN"]) == (str(run_id), "7")
    assert "HOME" not in seen


WORKER = """
import sys
from uuid import UUID
from climate.service.host_operations import cleaning_hook
run = cleaning_hook.HookRun(sys.argv[1], "h1", 600, UUID(sys.argv[2]), 7)
cleaning_hook.execute(run, lambda process: print(process.pid, flush=True) is None)
"""


@contextlib.contextmanager
def worker(wipe: Path, run_id: UUID) -> Iterator[tuple["subprocess.Popen[str]", int]]:
    """A worker process that runs the hook, and the number of its supervisor."""
    command = [sys.executable, "-c", WORKER, str(wipe), str(run_id)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            supervisor = int(process.stdout.readline())
            await_true(lambda: len(numbers(wipe)) == 3)
            yield process, supervisor
        finally:
            process.kill()


def test_nothing_outlives_a_worker_that_is_killed(wipe: Path) -> None:
    run_id = uuid4()
    with worker(wipe, run_id) as (process, supervisor):
        process.kill()
        await_true(lambda: not process_supervisor.started_at(supervisor))
    assert all_gone(wipe)
    assert list(process_supervisor.carriers(run_id=str(run_id))) == []


def test_a_killed_supervisor_is_seen_and_its_run_ended(wipe: Path) -> None:
    """All but the process without an environment, whose parent is gone, are found."""
    run_id = uuid4()
    with worker(wipe, run_id) as (process, supervisor):
        os.kill(supervisor, signal.SIGKILL)
        process.wait(PATIENCE)
        bare = int((wipe.parent / "bare.pid").read_text())
        assert [pid for pid in numbers(wipe) if process_supervisor.started_at(pid)] in ([], [bare])


@pytest.fixture
def hooked(climate: Climate) -> Climate:
    return replace(climate, settings=replace(climate.settings, cleaning_hook="true", cleaning_hook_seconds=600))


def being_cleaned(climate: Climate, clock: Clock) -> int:
    """The number of a host whose lease is over; its cleaning is to begin."""
    lease = make(climate, clock, hosts_wanted(1), start=0, hours=1)
    run_due(climate)
    clock.forward(hours=1)
    run_due(climate)
    (host,) = held(lease)
    return host


def record_run(engine: Engine, host: int, machine: str, run_id: UUID | None = None) -> None:
    """As a worker does that is then not heard of any more."""
    with engine.begin() as conn:
        conn.execute(
            text("UPDATE cleanings SET machine = :m, worker = 'w7', pid = 1234, run = :run WHERE host = :h"),
            {"m": machine, "h": host, "run": run_id or uuid4()},
        )


def lost_run(climate: Climate, clock: Clock, engine: Engine, machine: str, run_id: UUID | None = None) -> int:
    host, lost = being_cleaned(climate, clock), []
    cleaning.run_round(climate, lost.append)
    assert len(lost) == 1
    record_run(engine, host, machine, run_id)
    clock.forward(seconds=631)
    return host


def at_once(act: Callable[[], None]) -> None:
    act()


def begun(climate: Climate) -> int:
    """How many runs of the hook a round begins; they are carried out."""
    started: list[Callable[[], None]] = []
    cleaning.run_round(climate, started.append)
    for act in started:
        act()
    return len(started)


def test_a_lost_run_on_this_machine_is_killed_before_another_begins(
    hooked: Climate, clock: Clock, engine: Engine, wipe: Path
) -> None:
    run_id = uuid4()
    host = lost_run(hooked, clock, engine, str(cleaning_hook.this_machine()), run_id)
    environ = {"CLIMATE_RUN_ID": str(run_id), "PATH": os.environ["PATH"]}
    with subprocess.Popen([str(wipe)], env=environ, start_new_session=True) as left:
        await_true(lambda: len(numbers(wipe)) == 3)
        assert (begun(hooked), left.poll()) == (0, None)
        assert cleaning.end_lost_runs(hooked) == 1
        assert left.wait(PATIENCE) == -signal.SIGKILL
    assert begun(hooked) == 0  # it is tried again after a pause, as each run that failed
    clock.forward(seconds=30)
    assert begun(hooked) == 1
    assert (cleaning.run_round(hooked, at_once), pool_of(hooked, host)) == (1, Pool.RESERVATION)


def test_a_run_before_the_last_boot_is_over(hooked: Climate, clock: Clock, engine: Engine) -> None:
    before = Machine(cleaning_hook.this_machine().identity, "another-boot", "pid:[1]")
    lost_run(hooked, clock, engine, str(before))
    assert (begun(hooked), cleaning.end_lost_runs(hooked)) == (0, 1)
    clock.forward(seconds=30)
    assert begun(hooked) == 1


@pytest.mark.parametrize("other", ["elsewhere/1 boot pid:[1]", "{0.identity} {0.boot} pid:[1]"])
def test_a_host_fails_whose_run_nobody_can_see_and_an_admin_decides(
    hooked: Climate, clock: Clock, engine: Engine, other: str
) -> None:
    host = lost_run(hooked, clock, engine, other.format(cleaning_hook.this_machine()))
    for _ in range(20):
        assert (cleaning.end_lost_runs(hooked), begun(hooked), pool_of(hooked, host)) == (0, 0, Pool.CLEANING)
        clock.forward(seconds=29)
    clock.forward(seconds=60)
    assert cleaning.run_round(hooked, at_once) == 1
    with engine.connect() as conn:
        reason = conn.scalar(text("SELECT pool_reason FROM hosts WHERE id = :host"), {"host": host})
    assert (pool_of(hooked, host), reason) == (
        Pool.FAILED,
        "not cleaned: it is unknown if its run on w7, process 1234, is over",
    )
    failures.heal(hooked, ADMIN, str(host))
    recycling.run_round(hooked)
    assert (begun(hooked), cleaning.run_round(hooked, at_once), pool_of(hooked, host)) == (1, 1, Pool.RESERVATION)


@pytest.mark.parametrize("to", [Pool.RESERVATION, Pool.MULTI_TENANT])
def test_no_admin_moves_a_host_to_others_while_the_hook_runs(
    hooked: Climate, clock: Clock, engine: Engine, to: Pool
) -> None:
    host = being_cleaned(hooked, clock)
    cleaning.run_round(hooked, lambda act: None)
    record_run(engine, host, "elsewhere/1 boot pid:[1]")
    with pytest.raises(Conflict, match=r"cleaning hook runs for hosts: h\d+ \(process 1234 on w7\)"):
        pool_moves.move(hooked, ADMIN, RequestedMove((str(host),), to))
    assert pool_of(hooked, host) is Pool.CLEANING


def test_a_host_stays_in_maintenance_while_the_hook_runs(hooked: Climate, clock: Clock, engine: Engine) -> None:
    """It has been moved there from the cleaning; when the work is over, it comes back after the end of the run."""
    host = being_cleaned(hooked, clock)
    cleaning.run_round(hooked, lambda act: None)
    machine = cleaning_hook.this_machine()
    record_run(engine, host, str(machine))
    planned = maintenance.plan(hooked, ADMIN, maintenance.WindowRequest(str(host), None, None, "new memory"))
    maintenance.run_round(hooked)
    assert pool_of(hooked, host) is Pool.MAINTENANCE
    maintenance.end(hooked, ADMIN, planned.window.id)
    maintenance.run_round(hooked)
    assert pool_of(hooked, host) is Pool.MAINTENANCE
    clock.forward(seconds=631)
    assert cleaning.end_lost_runs(hooked) == 1
    maintenance.run_round(hooked)
    assert pool_of(hooked, host) is not Pool.MAINTENANCE


def test_a_host_waits_for_the_hook_though_the_operator_has_removed_it(
    hooked: Climate, clock: Clock, engine: Engine
) -> None:
    host = being_cleaned(hooked, clock)
    cleaning.run_round(hooked, lambda act: None)
    record_run(engine, host, "elsewhere/1 boot pid:[1]")
    without = replace(hooked, settings=replace(hooked.settings, cleaning_hook=""))
    assert (cleaning.run_round(without), pool_of(hooked, host)) == (0, Pool.CLEANING)
