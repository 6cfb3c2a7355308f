"""Placed servers that are gone from their child."""

from dataclasses import replace
from typing import Any
from uuid import uuid4

from sqlalchemy import text

from climate.compute.zones import placed_servers, polling, registry
from climate.compute.zones.client_interface import ChildAnswer, ChildError, ChildRequest
from climate.compute.zones.models import ChildZone
from tests.compute.zones.tree import Tree, Zone


def poll(zone: Zone) -> None:
    with zone.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_zones SET polled_at = NULL"))
    polling.poll(zone.compute)


def known(zone: Zone) -> set[str]:
    with zone.compute.engine.connect() as conn:
        return set(conn.execute(text("SELECT server_id::text FROM compute_zone_servers")).scalars())


def test_server_that_was_deleted_in_its_child_is_forgotten_by_the_next_poll(family: Tree) -> None:
    parent, left = family["parent"], family["left"]
    stays, goes, foreign = left.boot(user="admin"), left.boot(user="admin"), left.boot(user="demo")
    for server_id in (stays, goes, foreign):
        parent.place(server_id, 1)
    poll(parent)
    assert known(parent) == {stays, goes, foreign}
    left.ask("DELETE", f"/servers/{goes}")
    left.settle()
    poll(parent)
    assert known(parent) == {stays, foreign}, "a server that another account sees is still there"


def test_server_two_zones_below_is_kept_while_its_zone_is_away(family: Tree) -> None:
    parent, left, grandchild = family["parent"], family["left"], family["grandchild"]
    server_id = grandchild.boot(user="admin")
    left.place(server_id, 1, user="admin")
    parent.place(server_id, 1)
    family.cut("grandchild")
    poll(parent)
    assert known(parent) == {server_id}
    family.mend("grandchild")
    grandchild.ask("DELETE", f"/servers/{server_id}")
    grandchild.settle()
    poll(left)
    poll(parent)
    assert (known(left), known(parent)) == (set(), set())


def test_child_without_placed_servers_is_not_asked_for_any(family: Tree) -> None:
    poll(family["parent"])
    family.asked.clear()
    poll(family["parent"])
    assert set(family.asked) == {("left", "/zones/info"), ("right", "/zones/info")}


class Endless:
    """A client whose children list their servers page by page without an end."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []

    def send(self, zone: ChildZone, request: ChildRequest, seconds: float | None = None) -> ChildAnswer:
        raise NotImplementedError

    def send_all(self, requests: Any, seconds: float | None = None) -> list[ChildAnswer | ChildError]:
        self.batches.append([zone.id for zone, _ in requests])
        page = {"servers": [{"id": str(uuid4())}], "servers_links": [{"rel": "next"}]}
        return [ChildAnswer(200, page) for _ in requests]


def test_pages_of_all_children_are_asked_for_at_once_and_for_one_period_at_most(family: Tree) -> None:
    parent, script = family["parent"], Endless()
    for zone_id in (1, 2):
        parent.place(str(uuid4()), zone_id)
    zones = registry.listed(parent.compute)
    options = replace(parent.compute.zones, client=script, poll_seconds=0.0)
    assert placed_servers.forget_gone(replace(parent.compute, zones=options), zones) == []
    assert script.batches == [[1, 2]], "what is left is for the next poll"
    script.batches.clear()
    options = replace(options, poll_seconds=10**6)
    assert placed_servers.forget_gone(replace(parent.compute, zones=options), zones) == []
    assert script.batches == [[1, 2]] * placed_servers.MOST_PAGES
    assert len(known(parent)) == 2, "a list that does not end tells of no server that is gone"
