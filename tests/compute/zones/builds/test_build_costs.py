"""Costs of builds over the tree: tasks of large builds, statements of estimates, and requests sent at once."""

import re
import threading
from typing import Any

import pytest
from sqlalchemy import event

from climate.compute.zones.builds import builds
from tests.compute.zones.build_plan_trees import built, done, look, rows, server, spec, whole
from tests.compute.zones.tree import C, Tree, Zone

LARGE = 1000
PATIENCE = 120.0
"""Seconds until a request counts as sent alone."""

WRITES = re.compile(r"\b(INSERT|UPDATE|DELETE|MERGE|TRUNCATE|LOCK|NOTIFY|pg_notify|nextval|FOR SHARE)\b", re.IGNORECASE)


def unlimited(zone: Zone) -> None:
    """Lift the quota of the project of the administrator."""
    token = zone.token("admin")
    shown = zone.person("admin").ask("GET", "/identity/v3/auth/tokens", headers={"X-Subject-Token": token})
    project = done(shown)["token"]["project"]["id"]
    free = {"quota_set": {"instances": -1, "cores": -1, "ram": -1}}
    done(zone.ask("PUT", f"/os-quota-sets/{project}", free))


def meeting(tree: Tree, name: str, path: str, meet: threading.Barrier) -> None:
    """Let the first request to a path of a zone wait for the first one to each other zone of the meeting."""
    inner, first = tree.applications[name], threading.Lock()

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        is_asked = (environ["REQUEST_METHOD"], environ["PATH_INFO"]) == ("POST", f"{C}{path}")
        if is_asked and first.acquire(blocking=False):
            meet.wait(PATIENCE)
        return inner(environ, start_response)

    tree.applications[name] = application


def test_b1_a_thousand_servers_are_one_task(pair: Tree) -> None:
    parent = pair["parent"]
    unlimited(parent)
    answer = done(parent.ask("POST", "/zones/boot", server(num_instances=LARGE)))
    assert set(answer) == {"reservation_id"}
    assert len(builds.to_ring(parent.compute, again=0)) == 1
    assert rows(parent, "compute_servers") == []
    build = look(parent, answer["reservation_id"])
    assert (build["state"], build["requested"], build["placed"]) == ("queued", LARGE, 0)


def test_b2_children_are_asked_at_once(plans: Tree) -> None:
    for path in ("/zones/select", "/servers"):
        meet = threading.Barrier(2)
        for name in ("left", "right"):
            meeting(plans, name, path, meet)
    build = built(plans["parent"], num_instances=20)
    assert (build["state"], build["placed"]) == ("done", 20)
    assert all(rows(plans[name], "compute_servers") for name in ("left", "right"))


@pytest.mark.parametrize("count", [50, pytest.param(10_000, marks=pytest.mark.campaign)])
def test_b7_estimates_only_read(pair: Tree, count: int) -> None:
    """Nothing is stored for an estimate, however many are asked for."""
    left, statements = pair["left"], list[str]()
    left.ask("POST", "/zones/select", spec(num_instances=4))  # the sign-in of the administrator writes
    before = whole(left)

    def note(*call: Any) -> None:
        statements.append(call[2])

    event.listen(left.compute.engine, "before_cursor_execute", note)
    try:
        for _ in range(count):
            statements.clear()
            assert len(done(left.ask("POST", "/zones/select", spec(num_instances=4)))["weights"]) == 4
            assert [one for one in statements if WRITES.search(one)] == []
    finally:
        event.remove(left.compute.engine, "before_cursor_execute", note)
    assert statements
    assert whole(left) == before


def test_z9_children_ask_nobody_above_them(plans: Tree) -> None:
    built(plans["parent"], num_instances=20)
    asked = {name for name, _ in plans.asked}
    assert asked == {"left", "right", "grandchild"}
