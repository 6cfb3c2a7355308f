"""Zones cost nothing while no child is registered: requests and beats ask the database for no more."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event

from climate.compute.nodes.services import IMAGE_ID
from climate.compute.zones import registry
from climate.compute.zones.builds import builds
from climate.compute.zones.options import Zones
from tests.compute.zones.conftest import lone, standing
from tests.compute.zones.tree import LATEST, C, Tree, Zone
from tests.flask_apps import app_of
from tests.identity.identity_factory import Asker
from workers.pending_work import PendingKinds
from workers.poller import Poller

__all__ = ["lone", "standing"]

ACCOUNT = {"api_url": "http://child", "username": "u", "password": "correct horse"}
SERVER = {"server": {"name": "s", "imageRef": IMAGE_ID, "flavorRef": "1", "networks": "none"}}


@contextmanager
def counted(zone: Zone) -> Iterator[list[str]]:
    """The statements of a zone in the block."""
    seen: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        if "identity_revocations" not in statement:  # read once in a second, whoever asks
            seen.append(statement)

    event.listen(zone.compute.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(zone.compute.engine, "before_cursor_execute", note)


def without_zones(zone: Zone, user: str) -> Asker:
    """A user of the same deployment, in which nothing is known of zones."""
    return Asker(app_of(replace(zone.deployment, compute=replace(zone.compute, zones=Zones()))), zone.token(user))


@pytest.mark.parametrize("user", ["admin", "demo"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/servers/{server}", None),
        ("GET", "/servers", None),
        ("GET", "/servers/detail", None),
        ("POST", "/servers", SERVER),
        ("POST", "/servers/{server}/action", {"lock": None}),
        ("PUT", "/servers/{server}", {"server": {"description": "d"}}),
        ("DELETE", "/servers/{server}", None),
        ("GET", "/servers/{server}/os-instance-actions", None),
        ("GET", "/flavors/detail", None),
        ("GET", "/limits", None),
        ("GET", "/os-availability-zone", None),
        ("GET", "/os-keypairs", None),
    ],
)
def test_request_costs_no_statement_more(lone: Tree, user: str, method: str, path: str, body: Any) -> None:
    parent = lone["parent"]
    costs = []
    for asker in (parent.person(user), without_zones(parent, user)):
        full = C + path.format(server=parent.boot(user, networks="none"))
        asker.ask("GET", f"{C}/flavors")  # what a process reads once
        with counted(parent) as seen:
            answer = asker.ask(method, full, headers=LATEST, **({} if body is None else {"json": body}))
        assert answer.status_code < 300, answer.get_data(as_text=True)
        costs.append(list(seen))
        parent.settle()
    assert len(costs[0]) <= len(costs[1]), "\n".join(costs[0])


def test_server_that_is_nowhere_costs_one_statement_more(lone: Tree) -> None:
    parent = lone["parent"]
    with counted(parent) as seen:
        assert parent.ask("GET", f"/servers/{uuid4()}").status_code == 404
    assert len(seen) == 2, "\n".join(seen)


@pytest.fixture
def poller(lone: Tree) -> Poller:
    """A poller that has looked once for what there was before it."""
    made = Poller(lone["parent"].deployment, None, news=PendingKinds())  # type: ignore[arg-type]
    made._wake_for_builds()
    made.poll_zones()
    return made


def test_beats_and_polls_cost_no_statement(lone: Tree, poller: Poller) -> None:
    with counted(lone["parent"]) as seen:
        for _ in range(3):
            poller._wake_for_builds()
            poller.poll_zones()
    assert seen == []


def test_child_that_is_registered_is_polled_by_all_pollers(lone: Tree, poller: Poller) -> None:
    parent = lone["parent"]
    child = registry.add(parent.compute, {**ACCOUNT, "api_url": "http://nowhere"})
    poller.news.notify("children")
    for _ in range(2):
        poller.poll_zones()
    assert registry.get(parent.compute, child.id).attempts == 1
    with counted(parent) as seen:
        poller.poll_zones()
    assert seen, "while there is a child, each look asks whether it is due"


def heard(zone: Zone, act: Callable[[], object]) -> list[str]:
    """The news of what `act` does."""
    connection = zone.compute.engine.raw_connection()
    try:
        conn: Any = connection.driver_connection
        conn.autocommit = True
        conn.execute("LISTEN climate_zones")
        act()
        return [told.payload for told in conn.notifies(timeout=60, stop_after=1)]
    finally:
        connection.invalidate()


def test_new_child_and_new_build_are_reported(lone: Tree) -> None:
    parent = lone["parent"]
    assert heard(parent, lambda: registry.add(parent.compute, ACCOUNT)) == ["children"]
    assert heard(parent, lambda: parent.ask("POST", "/zones/boot", SERVER)) == ["builds"]
    assert builds.are_open(parent.compute)
