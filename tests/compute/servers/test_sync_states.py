"""What happens to servers behind the cloud's back is noticed: with real processes, and for every pair of states."""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pytest
from sqlalchemy import event, text
from structlog.testing import capture_logs

from climate.compute.linux import processes
from climate.compute.models.node import NodeSpec
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    ERROR,
    PAUSED,
    RESERVED,
    SHUTOFF,
    STOP,
    SUSPEND,
    SUSPENDED,
    VERIFY_RESIZE,
)
from climate.compute.nodes import nodes_file, services
from climate.compute.nodes.nodes_file import NodesFile
from climate.compute.servers import actions, create, guest_conversion, sync_states
from climate.compute.virt import State
from climate.compute.virt.guest_folders import CONSOLE_BYTES, LOG_BYTES
from climate.compute.virt.in_memory import MemoryDriver
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.compute.virt.process import ProcessDriver
from tests.compute.cloud_factory import SERVICE, Place, node, place, request


@dataclass
class Told(MemoryDriver):
    """A driver that finds what a test says."""

    found: dict[str, State] = field(default_factory=dict)

    def knows_guests(self, node: str) -> bool:
        return True

    def states(self) -> Mapping[str, State]:
        return self.found


@pytest.fixture
def told(scratch: str, tmp_path: Path) -> Iterator[Place]:
    with place(scratch, tmp_path, [], Told([node("n1", vcpus=100, memory_mb=10**6)])) as found:
        yield found


@pytest.fixture
def real(scratch: str, tmp_path: Path) -> Iterator[Place]:
    """Two nodes whose servers are processes."""
    nodes_file.write(tmp_path, two())
    with place(scratch, tmp_path, [], fresh(tmp_path)) as found:
        yield found
    left = ProcessDriver(tmp_path / "servers")
    for server_id in left.states():
        left.delete(server_id)


def two() -> Sequence[NodeSpec]:
    return [node(name, driver="process") for name in ("n1", "n2")]


def fresh(home: Path) -> MultiNodeDriver:
    """The driver as a service has it that was just started."""
    return MultiNodeDriver(NodesFile(home).nodes, {"process": ProcessDriver(home / "servers")})


def tend(here: Place) -> None:
    """What a service does now and then."""
    services.refresh(here.compute)
    services.audit(here.compute)
    sync_states.reconcile(here.compute)


def process(here: Place, server_id: str) -> psutil.Process:
    pid = processes.read(here.compute.home / "servers" / server_id / "pid")
    assert pid is not None
    return psutil.Process(pid.number)


def kill(here: Place, server_id: str) -> None:
    victim = process(here, server_id)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait(60)


def ask(here: Place, server_id: str, task: str) -> None:
    actions.request_task(here.compute, server_id, task)
    here.settle()


def last_note(here: Place, server_id: str) -> tuple[Any, ...]:
    with here.compute.engine.connect() as conn:
        asked = text("SELECT action, message FROM compute_actions WHERE server_id = :id ORDER BY id DESC LIMIT 1")
        return tuple(conn.execute(asked, {"id": server_id}).one())


def test_logs_are_kept_within_bounds_by_the_round(real: Place) -> None:
    server_id = real.boot_one().id
    log = next(real.compute.home.rglob(f"{server_id}/console.log"))
    log.write_bytes(b"x" * (LOG_BYTES + 1))
    sync_states.reconcile(real.compute)
    assert log.stat().st_size == CONSOLE_BYTES


def test_a_killed_guest_is_a_server_that_is_shut_off(real: Place) -> None:
    server, other = real.boot_one(), real.boot_one()
    kill(real, server.id)
    tend(real)
    assert (real.look(server.id).status, real.look(other.id).status) == (SHUTOFF, ACTIVE)
    assert last_note(real, server.id) == ("stop", "it had ended by itself")
    ask(real, server.id, "powering-on")
    tend(real)
    assert real.look(server.id).status == ACTIVE


def test_a_reserved_server_that_was_started_by_hand_is_prepared_anew(real: Place) -> None:
    server = create.reserve(real.compute, request(), str(uuid4()))
    real.settle()
    real.driver.run(guest_conversion.guest(real.compute, server))
    started = process(real, server.id)
    tend(real)
    assert real.look(server.id).task == "reserving"
    real.settle()
    assert (real.look(server.id).status, real.driver.states()) == (RESERVED, {server.id: State.PREPARED})
    assert not started.is_running()


def test_a_reserved_server_is_prepared_anew_when_its_disk_is_gone(real: Place) -> None:
    server_id = create.reserve(real.compute, request(), str(uuid4())).id
    real.settle()
    tend(real)
    assert real.look(server_id).task is None
    shutil.rmtree(real.compute.home / "servers" / server_id)
    tend(real)
    assert last_note(real, server_id) == ("create", "it lacked what it is started with")
    real.settle()
    assert (real.look(server_id).status, real.driver.states()) == (RESERVED, {server_id: State.PREPARED})


def test_a_suspended_server_whose_guest_is_gone_is_shut_off(real: Place) -> None:
    server_id = real.boot_one().id
    ask(real, server_id, SUSPEND)
    tend(real)
    assert real.look(server_id).status == SUSPENDED
    kill(real, server_id)
    tend(real)
    assert real.look(server_id).status == SHUTOFF


def test_a_server_that_runs_though_it_is_shut_off_is_stopped(real: Place) -> None:
    server = real.boot_one()
    ask(real, server.id, STOP)
    real.driver.run(guest_conversion.guest(real.compute, server))
    tend(real)
    assert (real.look(server.id).status, real.look(server.id).task) == (SHUTOFF, STOP)
    real.settle()
    assert (real.look(server.id).status, real.driver.states()) == (SHUTOFF, {server.id: State.DEAD})
    tend(real)
    assert real.look(server.id).task is None


def test_a_restarted_service_goes_on_with_what_runs(real: Place) -> None:
    server = real.boot_one()
    before = process(real, server.id)
    restarted = replace(real, compute=replace(real.compute, driver=fresh(real.compute.home)))
    tend(restarted)
    assert real.look(server.id) == server
    assert process(real, server.id) == before
    ask(restarted, server.id, STOP)
    assert not before.is_running()


def test_a_node_that_goes_away_and_comes_back(real: Place) -> None:
    alive, dies, stopped, stays = (real.boot_one(zone=f"nova::{name}", admin=True).id for name in ("n1",) * 3 + ("n2",))
    ask(real, stopped, STOP)
    nodes_file.write(real.compute.home, two()[1:])
    with capture_logs() as said:
        tend(real)
    assert len([line for line in said if line["event"] == "server state corrected"]) == 2
    assert [real.look(one).status for one in (alive, dies, stopped, stays)] == [ERROR, ERROR, SHUTOFF, ACTIVE]
    fault = real.look(alive).fault or {}
    assert (fault["code"], fault["message"]) == (500, "The host of this server is gone.")
    assert process(real, alive).is_running()
    kill(real, dies)
    nodes_file.write(real.compute.home, two())
    tend(real)
    assert [real.look(one).status for one in (alive, dies, stopped, stays)] == [ACTIVE, SHUTOFF, SHUTOFF, ACTIVE]
    assert real.look(alive).fault is None
    assert real.drift() == []


def test_a_server_whose_node_is_gone_can_be_deleted(real: Place) -> None:
    server_id = real.boot_one(zone="nova::n1", admin=True).id
    guest = process(real, server_id)
    nodes_file.write(real.compute.home, two()[1:])
    tend(real)
    ask(real, server_id, DELETE)
    assert not guest.is_running()
    tend(real)
    assert real.count("compute_nodes") == 1


def test_what_belongs_to_no_server_is_cleared_away_in_this_cloud_only(real: Place) -> None:
    kept = real.boot_one()
    tend(real)
    stray = replace(guest_conversion.guest(real.compute, kept), id=str(uuid4()))
    real.driver.run(stray)
    tend(real)
    assert set(real.driver.states()) == {kept.id}
    real.driver.run(stray)
    with real.compute.engine.begin() as conn:  # as if the service were given an empty database by mistake
        conn.execute(text("DELETE FROM compute_actions"))
        conn.execute(text("DELETE FROM compute_servers"))
        conn.execute(text("DELETE FROM compute_aggregates"))
    with capture_logs() as said:
        tend(real)
    assert [line["guests"] for line in said if line["event"] == "guests of another cloud ignored"] == [2]
    assert set(real.driver.states()) == {kept.id, stray.id}


def test_nothing_is_touched_while_the_nodes_are_not_known(real: Place) -> None:
    server = real.boot_one()
    (real.compute.home / nodes_file.FILE).write_text("- {name: n1")
    restarted = replace(real, compute=replace(real.compute, driver=fresh(real.compute.home)))
    kill(real, server.id)
    tend(restarted)
    assert real.look(server.id) == server
    tend(real)  # it knows the nodes from before
    assert real.look(server.id).status == SHUTOFF


BECOMES = {
    (ACTIVE, State.DEAD): (SHUTOFF, None),
    (ACTIVE, State.PAUSED): (PAUSED, None),
    (ACTIVE, State.SUSPENDED): (SUSPENDED, None),
    (PAUSED, State.DEAD): (SHUTOFF, None),
    (PAUSED, State.RUNNING): (ACTIVE, None),
    (SUSPENDED, State.DEAD): (SHUTOFF, None),
    (SUSPENDED, State.RUNNING): (ACTIVE, None),
    (SHUTOFF, State.RUNNING): (SHUTOFF, STOP),
    (SHUTOFF, State.PAUSED): (SHUTOFF, STOP),
    **{(status, State.PREPARED): (SHUTOFF, None) for status in (ACTIVE, PAUSED, SUSPENDED)},
    **{(RESERVED, state): (RESERVED, "reserving") for state in State if state is not State.PREPARED},
}
"""Status and what is found -> status and task; every other pair stays as it is."""


def test_every_pair_of_status_and_state(told: Place) -> None:
    statuses = (ACTIVE, PAUSED, SUSPENDED, SHUTOFF, RESERVED, VERIFY_RESIZE, ERROR)
    pairs = [(status, state) for status in statuses for state in State]
    made = dict(zip([server.id for server in told.boot(count=len(pairs), least=len(pairs))], pairs, strict=True))
    told.settle()
    with told.compute.engine.begin() as conn:
        for server_id, (status, _) in made.items():
            given = {"status": status, "id": server_id}
            conn.execute(text("UPDATE compute_servers SET status = :status WHERE id = :id"), given)
    told.driver.found = {server_id: state for server_id, (_, state) in made.items()}
    sync_states.reconcile(told.compute)
    found = {pair: told.look(server_id) for server_id, pair in made.items()}
    assert {pair: (server.status, server.task) for pair, server in found.items()} == {
        pair: BECOMES.get(pair, (pair[0], None)) for pair in pairs
    }
    assert {server_id for _, server_id in told.rings.rung} == {server.id for server in found.values() if server.task}
    assert {host for host, _ in told.rings.rung} == {SERVICE}


def test_a_server_that_changes_meanwhile_is_left_alone(told: Place) -> None:
    server = told.boot_one()

    class Asked(Told):
        def states(self) -> Mapping[str, State]:
            actions.request_task(told.compute, server.id, STOP)  # between the look at the rows and what is made of them
            return {}

    sync_states.reconcile(replace(told.compute, driver=Asked(told.driver.specs)))
    assert (told.look(server.id).status, told.look(server.id).task) == (ACTIVE, STOP)


def test_thirty_dead_servers_cost_as_many_statements_as_one(told: Place) -> None:
    told.boot(count=30, least=30)
    told.settle()
    said: list[str] = []

    @event.listens_for(told.compute.engine, "before_cursor_execute")
    def _count(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
        said.append(statement)

    sync_states.reconcile(told.compute)
    assert len(said) <= 7
    assert told.count("compute_servers", "status = 'SHUTOFF'") == 30
    assert told.count("compute_actions", "action = 'stop' AND finished_at IS NOT NULL") == 30


def test_guests_that_live_in_memory_only_are_not_judged(here: Place) -> None:
    server = here.boot_one()
    tend(here)
    assert here.look(server.id) == server
