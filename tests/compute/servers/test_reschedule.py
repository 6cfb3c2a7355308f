"""What cannot be made on one node is made on another, up to so many; a worker that lost its work touches nothing."""

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute import Compute
from climate.compute.models.request import Spec
from climate.compute.models.server import ACTIVE, DELETE, ERROR, RESERVED, WAKE, Server
from climate.compute.placement import decisions
from climate.compute.scheduler.scheduler_parts import Options
from climate.compute.servers import actions, create, reschedule
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute.cloud_factory import HALF, SERVICE, Place, node, place, request


def broken(*names: str, working: tuple[str, ...] = ()) -> MemoryDriver:
    return MemoryDriver([node(name) for name in (*names, *working)], broken=set(names))


def tries(compute: Compute, most: int) -> Compute:
    return replace(compute, rules=replace(compute.rules, options=Options(max_attempts=most)))


def message(server: Server) -> str:
    return str((server.fault or {})["message"])


def test_each_retry_is_kept_with_what_it_came_after(scratch: str, tmp_path: Path) -> None:
    driver = broken("n1", "n2", working=("n3",))
    with place(scratch, tmp_path, [], driver) as here:
        server = here.boot_one()
        first, *retries = decisions.of(here.compute, server.id)
        assert (server.status, server.node, len(server.tried)) == (ACTIVE, "n3", 2)
        assert (first.kind, first.server_id) == (decisions.PLACED, None)
        assert {(kept.kind, kept.server_id, kept.error) for kept in retries} == {(decisions.RETRY, server.id, None)}
        assert {(kept.after or {})["node"] for kept in retries} == {"n1", "n2"}
        assert all("cannot make" in (kept.after or {})["reason"] for kept in retries)
        assert here.drift() == []


def test_after_so_many_nodes_it_is_an_error_that_says_so(scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, [], broken("n1", "n2", "n3", "n4")) as here:
        here.compute = tries(here.compute, 2)
        server = here.boot_one()
        assert server.status == ERROR
        assert message(server).startswith(
            f"Exceeded max scheduling attempts 2 for instance {server.id}. Last exception: "
        )
        assert "cannot make" in message(server)
        assert len(here.driver.calls) == 2
        last = decisions.of(here.compute, server.id)[-1]
        assert (last.kind, last.error) == (decisions.RETRY, message(server))
        assert here.drift() == []


def test_with_one_attempt_there_is_no_retry(scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, [], broken("n1", working=("n2",))) as here:
        here.compute = tries(here.compute, 1)
        server = here.boot_one(zone="nova::n1", admin=True)
        assert (server.status, server.tried) == (ERROR, ())
        assert message(server).startswith("node (its host) cannot make")


@pytest.mark.parametrize(
    ("named", "most", "again"),
    [
        ({}, 2, True),
        ({}, 1, False),
        ({"force_hosts": ("h1",)}, 3, False),
        ({"force_nodes": ("n1",)}, 3, False),
        ({"force_hosts": ("h1", "h2")}, 3, True),
        ({"force_nodes": ("n1", "n2")}, 3, True),
        ({"force_hosts": ("h1", "h2"), "force_nodes": ("n1",)}, 3, False),
    ],
)
def test_who_names_one_host_gets_no_other_and_who_names_two_does(
    named: dict[str, tuple[str, ...]], most: int, again: bool
) -> None:
    """FS-28."""
    assert reschedule.retried(Spec("demo", 1, 512, 1024, tried=(1,), **named), most) is again


def test_a_failure_is_logged_with_its_host_before_another_is_tried(
    scratch: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with place(scratch, tmp_path, [], broken("n1", working=())) as here:
        here.boot_one()
    assert f"Error from last host: {SERVICE} (node n1): node n1 cannot make a server" in caplog.messages


def test_a_reserved_server_moves_too_and_stays_reserved(scratch: str, tmp_path: Path) -> None:
    """Off the node where it cannot be prepared, and later off the one where it cannot be woken."""
    driver = broken("n1", working=("n2", "n3"))
    with place(scratch, tmp_path, [], driver) as here:
        made = create.reserve(here.compute, request(HALF, zone="nova"), str(uuid4()))
        assert (made.status, made.node) == (RESERVED, "n1")
        here.settle()
        held = here.look(made.id)
        assert (held.status, held.node) == (RESERVED, "n2")
        driver.broken, driver.guests = {"n1", "n2"}, {}
        actions.request_task(here.compute, made.id, WAKE)
        here.settle()
        awake = here.look(made.id)
        assert (awake.status, awake.node) == (ACTIVE, "n3")
        assert here.drift() == []


def test_a_forced_node_is_not_left(scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, [], broken("n1", working=("n2",))) as here:
        for zone in ("nova:n1", "nova::n1"):
            server = here.boot_one(zone=zone, admin=True)
            assert (server.status, server.node) == (ERROR, "n1")
            assert message(server).startswith("node (its host) cannot make")


def test_where_no_other_node_is_left_both_reasons_are_reported(scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, [], broken("n1", working=())) as here:
        server = here.boot_one(HALF)
        assert message(server).startswith("No valid host was found.")
        assert "Last exception: node (its host) cannot make" in message(server)
        last = decisions.of(here.compute, server.id)[-1]
        assert (last.kind, (last.after or {})["node"]) == (decisions.RETRY, "n1")
        assert "No valid host" in (last.error or "")


def working(here: Place, server_id: str, worker: str) -> None:
    """That worker has the work, and its claim has run out."""
    with here.compute.engine.begin() as conn:
        given = {"id": server_id, "worker": worker}
        conn.execute(text("UPDATE compute_servers SET worker = :worker, worker_until = now() WHERE id = :id"), given)


def test_a_late_failure_touches_nothing_of_the_successor(here: Place) -> None:
    late = str(uuid4())
    server = here.boot()[0]
    working(here, server.id, late)
    seen = here.look(server.id)
    here.settle()
    assert reschedule.elsewhere(here.compute, seen, late, "too late")
    after = here.look(server.id)
    assert (after.status, after.node, after.tried) == (ACTIVE, server.node, ())
    assert server.id in here.driver.guests
    assert ("delete", server.id) not in here.driver.calls
    assert here.rings.rung == []


def test_who_fails_while_its_server_is_deleted_looks_again(here: Place) -> None:
    worker = str(uuid4())
    server = here.boot()[0]
    working(here, server.id, worker)
    seen = here.look(server.id)
    actions.request_task(here.compute, server.id, DELETE)
    assert not reschedule.elsewhere(here.compute, seen, worker, "failed")
    assert here.look(server.id).task == DELETE
    assert here.drift() == []
