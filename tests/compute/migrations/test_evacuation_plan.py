"""The plan by which a host is emptied: where each server would go, and which cannot."""

from pathlib import Path

import pytest
from sqlalchemy import text

from climate.compute.errors import NotFound
from climate.compute.migrations import cold_migration, evacuation_plan
from climate.compute.models.server import PAUSE, STOP, Server
from climate.compute.placement import server_groups
from climate.compute.servers import actions, resize
from climate.compute.virt.multi_node import MultiNodeDriver
from tests.compute.cloud_factory import HALF, SERVICE, TINY, Place, node, place
from tests.compute.virt.hypervisor_cluster.live_machines import Host

OWNER = {"project_id": "demo", "user_id": "dora"}


def on_node(here: Place, name: str, count: int, **wanted: object) -> list[Server]:
    """Servers on a node, whatever the scheduler thinks."""
    made = [here.boot_one(wanted.pop("flavor", TINY), zone=f"nova::{name}", admin=True, **wanted) for _ in range(count)]  # type: ignore[arg-type]
    assert {server.node for server in made} == {name}
    return made


def test_every_server_goes_where_there_is_room_and_nothing_changes(here: Place) -> None:
    made = on_node(here, "n1", 3)
    before = [here.look(server.id) for server in made]
    steps = evacuation_plan.plan(here.compute, "n1")
    assert [step.server.id for step in steps] == [server.id for server in made]
    assert all(step.action == "migrate" and step.node in ("n2", "n3", "n4") for step in steps)
    assert [here.look(server.id) for server in made] == before
    for step in steps:
        cold_migration.migrate(here.compute, step.server.id, step.node)
    here.settle()
    assert [here.look(server.id).node for server in made] == [step.node for step in steps]


def test_servers_are_placed_on_what_those_before_them_leave(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_nodes SET present = (name IN ('n1', 'n2')), ram_ratio = 1"))
    made = [here.boot_one(HALF, zone="nova::n1", admin=True) for _ in range(2)]
    with here.compute.engine.begin() as conn:  # one of them fits beside what is taken there
        conn.execute(text("UPDATE compute_nodes SET reserved_ram_mb = 4096 WHERE name = 'n2'"))
    found = {step.server.id: step for step in evacuation_plan.plan(here.compute, "n1")}
    assert [found[server.id].node for server in made] == ["n2", None]
    assert "No valid host" in str(found[made[1].id].reason)


def test_what_cannot_be_moved_says_why(here: Place) -> None:
    paused, _ = on_node(here, "n1", 2)
    actions.request_task(here.compute, paused.id, PAUSE)
    here.settle()
    steps = evacuation_plan.plan(here.compute, "n1")
    assert [step.node is None for step in steps] == [True, False]
    assert "paused" in str(steps[0].reason)


def test_what_can_move_while_it_runs_is_moved_live(scratch: str, tmp_path: Path) -> None:
    """Those that run or are paused; one that is shut off is migrated cold."""
    host = Host(name=SERVICE)
    host.others = {SERVICE: host}
    nodes = [node("n1", driver="qemu"), node("n2", driver="qemu")]
    with place(scratch, tmp_path, [], MultiNodeDriver(lambda: nodes, {"qemu": host})) as here:
        made = on_node(here, "n1", 3)
        for server, task in zip(made, (PAUSE, STOP), strict=False):
            actions.request_task(here.compute, server.id, task)
        here.settle()
        found = {step.server.id: (step.action, step.node) for step in evacuation_plan.plan(here.compute, "n1")}
    kinds = ("os-migrateLive", "migrate", "os-migrateLive")
    assert [found[server.id] for server in made] == [(kind, "n2") for kind in kinds]


def test_servers_of_a_host_that_is_down_are_evacuated(here: Place) -> None:
    on_node(here, "n1", 1)
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_services SET forced_down = true"))
    (step,) = evacuation_plan.plan(here.compute, SERVICE)
    assert (step.action, step.node) == ("evacuate", None)  # its service is the only one


def test_members_of_a_group_stay_apart(here: Place) -> None:
    group = server_groups.create(here.compute, **OWNER, name="apart", policy="anti-affinity")
    made = [here.boot_one(hints={"group": group.id}) for _ in range(3)]
    (step,) = evacuation_plan.plan(here.compute, made[0].node or "")
    assert step.node not in {server.node for server in made}
    cold_migration.migrate(here.compute, made[0].id)
    here.settle()
    assert len({here.look(server.id).node for server in made}) == 3
    resize.confirm(here.compute, made[0].id)


def test_there_must_be_such_a_host(here: Place) -> None:
    assert evacuation_plan.plan(here.compute, "n1") == []
    with pytest.raises(NotFound):
        evacuation_plan.plan(here.compute, "n9")
