"""The work of the search for moves ends, except deletions that wait for a failed member of the cluster."""

import json
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from climate.compute.models.server import ACTIVE, DELETE, ERROR, STOP, Server
from climate.compute.servers import actions
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.store.engine import connect
from tests.compute.cloud_factory import TINY
from tests.conftest import MEMBER
from tests.machine.move_rules import FAR, SUM, Moving, registered

COUNT = 3


@pytest.fixture
def world(make_database: Callable[..., str], engine_template: str, tmp_path: Path) -> Iterator[Moving]:
    """Servers of a lease of the cluster, as many as it has members."""
    engine = connect(make_database(engine_template), pool_size=5)
    registered(engine)
    found = Moving(engine, tmp_path)
    wanted = {
        "resource_type": "physical:host",
        "min": 1,
        "max": 1,
        "hypervisor_properties": json.dumps(["==", "$hypervisor_hostname", SUM]),
    }
    start = found.clock.time
    lease = leases.create(found.climate, MEMBER, LeaseRequest("l", start, start + timedelta(hours=1), None, [wanted]))
    found.run_events()
    hints = {"reservation": str(lease.reservations[0].id)}
    made = found.here.boot(TINY, project_id="project", user_id="user", hints=hints, count=COUNT)
    found.ids += [server.id for server in made]
    found.finish()
    assert [(one.status, one.node) for one in found.servers()] == [(ACTIVE, SUM)] * COUNT
    yield found
    found.stack.close()
    engine.dispose()


def failed(world: Moving) -> tuple[str, Server]:
    """Let the member fail that has a server, so that nothing can be said of it; return both."""
    name, server = next((name, one) for one in world.servers() for name in world.copies(one.id) if name in FAR)
    world.members[name].driver.up = world.members[name].can_fence = False
    return name, server


def test_a_deletion_that_waits_for_a_failed_member_is_left_open_and_done_when_it_returns(world: Moving) -> None:
    name, server = failed(world)
    actions.request_task(world.here.compute, server.id, DELETE)
    world.finish()
    assert [one.id for one in world.servers() if one.task == DELETE] == [server.id]
    assert world.copies(server.id) == [name]
    world.members[name].driver.up = True
    world.finish()
    assert server.id not in [one.id for one in world.servers()]
    assert world.copies(server.id) == []


def test_other_deletions_do_not_wait_for_it(world: Moving) -> None:
    name, server = failed(world)
    for one in world.servers():
        actions.request_task(world.here.compute, one.id, DELETE)
    world.finish()
    left = [one.id for one in world.servers()]
    assert server.id in left
    assert all(world.copies(one) == [name] for one in left)
    assert len(left) < COUNT


def test_a_stop_does_not_wait_for_it(world: Moving) -> None:
    """It fails with a reason, and the server runs where it ran."""
    name, server = failed(world)
    actions.request_task(world.here.compute, server.id, STOP)
    world.finish()
    found = next(one for one in world.servers() if one.id == server.id)
    assert (found.status, found.task) == (ERROR, None)
    assert "cannot be reached" in (found.fault or {})["message"]
    assert world.copies(server.id) == [name]


def test_a_deletion_that_a_working_member_never_does_is_a_fault(world: Moving) -> None:
    name, server = failed(world)
    world.members[name].driver.up = world.members[name].driver.mute = True
    actions.request_task(world.here.compute, server.id, DELETE)
    with pytest.raises(AssertionError, match="does not end"):
        world.finish()
