"""Builds over a real tree of zones, while a child or the parent is killed in the middle."""

from collections import Counter
from typing import Any

import pytest

from tests.campaign import length
from tests.system.api_client import Api
from tests.system.stack import await_so
from tests.system.zone_tree import SECONDS, ZONES, C, ZoneTree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(2400)]

NEW = {"OpenStack-API-Version": "compute 2.79"}
COUNT = 20


def begin(parent: Api, name: str) -> str:
    """Ask for a build; its reservation id."""
    image = parent.ask("GET", "/image/v2/images").json()["images"][0]["id"]
    body = {"name": name, "flavorRef": "42", "imageRef": image, "networks": "auto", "num_instances": COUNT}
    answer = parent.ask("POST", f"{C}/zones/boot", {"server": body}, **NEW)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["reservation_id"])


def look(parent: Api, reservation: str) -> dict[str, Any]:
    return dict(parent.ask("GET", f"{C}/os-zone-builds/{reservation}").json()["build"])


def there(tree: ZoneTree, reservation: str) -> dict[str, list[str]]:
    """Zone -> names of its own servers of a build."""
    found = {}
    for zone in ZONES:
        path = f"{C}/servers?reservation_id={reservation}&all_tenants=1"
        servers = tree.api(zone).ask("GET", path, **NEW).json()["servers"]
        found[zone] = [server["name"] for server in servers if not server.get("_is_precooked")]
    return found


def check(tree: ZoneTree, reservation: str) -> dict[str, list[str]]:
    """All servers of a done build are there once, and the parent knows where."""
    build = look(tree.api("parent"), reservation)
    assert (build["state"], build["placed"], build["fault"]) == ("done", COUNT, None)
    found = there(tree, reservation)
    counts = Counter(name for names in found.values() for name in names)
    assert sorted(counts.values()) == [1] * COUNT, counts
    places = Counter(server["zone"] for server in build["servers"])
    assert places[None] == len(found["parent"])
    assert places["child-2"] == len(found["child-2"])
    assert places["child-1"] == len(found["child-1"]) + len(found["grandchild"])
    return found


def clear(tree: ZoneTree, reservation: str) -> None:
    """Delete the servers of a build through the parent."""
    parent = tree.api("parent")
    for server in look(parent, reservation)["servers"]:
        assert parent.ask("DELETE", f"{C}/servers/{server['id']}").status_code == 204
    await_so(lambda: not any(there(tree, reservation).values()), SECONDS, "the deletion of the build")


def test_servers_are_spread_over_all_zones_and_run(tree: ZoneTree) -> None:
    parent = tree.api("parent")
    reservation = begin(parent, "wide")
    await_so(lambda: look(parent, reservation)["state"] == "done", SECONDS, "the build")
    found = check(tree, reservation)
    assert all(found.values()), found

    def running() -> bool:
        servers = parent.ask("GET", f"{C}/servers/detail?reservation_id={reservation}", **NEW).json()["servers"]
        return [server["status"] for server in servers] == ["ACTIVE"] * COUNT

    await_so(running, SECONDS, "the boot of all servers")
    clear(tree, reservation)


def test_servers_go_where_the_weights_are_lowest(tree: ZoneTree) -> None:
    """An offset keeps a child free as long as others have room."""
    parent, path = tree.api("parent"), f"{C}/zones/{tree.active()['child-2']}"
    assert parent.ask("PUT", path, {"zone": {"weight_offset": 1000.0}}).status_code == 200
    try:
        reservation = begin(parent, "light")
        await_so(lambda: look(parent, reservation)["state"] == "done", SECONDS, "the build")
        found = check(tree, reservation)
        assert found["child-2"] == []
        assert found["parent"]
        assert found["child-1"]
        clear(tree, reservation)
    finally:
        assert parent.ask("PUT", path, {"zone": {"weight_offset": 0.0}}).status_code == 200


@pytest.mark.parametrize("victim", length(["child-2"], ["child-2", "parent"]))
def test_a_zone_that_is_killed_in_the_middle_loses_and_doubles_nothing(tree: ZoneTree, victim: str) -> None:
    parent = tree.api("parent")
    reservation = begin(parent, f"without-{victim}")
    await_so(lambda: bool(look(parent, reservation)["placed"]), SECONDS, "the first servers")
    environ = tree.kill(victim)
    tree.begin(environ)

    def is_done() -> bool:
        answer = parent.ask("GET", f"{C}/os-zone-builds/{reservation}")
        return answer.status_code == 200 and answer.json()["build"]["state"] == "done"

    await_so(lambda: tree.is_ready("parent") and is_done(), 600, "the end of the build")
    await_so(lambda: tree.is_ready(victim), 600, f"the return of {victim}")
    await_so(lambda: len(tree.active()) == 2, 600, "both children")
    check(tree, reservation)
    clear(tree, reservation)
