"""Lists of servers over the zones below."""

from typing import Any

from tests.compute.zones.tree import LATEST, Tree, Zone


def listed(zone: Zone, query: str, user: str = "admin", path: str = "/servers") -> Any:
    answer = zone.ask("GET", f"{path}?{query}", user=user, headers=LATEST)
    assert answer.status_code == 200, answer.get_data(as_text=True)
    return answer.get_json()


def ids(body: Any) -> list[str]:
    return [server["id"] for server in body["servers"]]


def build_of(zone: Zone, server_id: str) -> str:
    server = zone.ask("GET", f"/servers/{server_id}", headers=LATEST).get_json()["server"]
    return str(server["OS-EXT-SRV-ATTR:reservation_id"])


def test_ds_14_reservation_of_five_servers_is_listed_with_those_of_children(family: Tree) -> None:
    parent, left, grandchild = family["parent"], family["left"], family["grandchild"]
    first = parent.boot(user="admin", min_count=5)
    build = build_of(parent, first)
    below = [left.boot(user="admin"), grandchild.boot()]
    for zone, server_id in zip((left, grandchild), below, strict=True):
        with zone.compute.engine.begin() as conn:
            conn.exec_driver_sql(f"UPDATE compute_servers SET build_id = '{build}' WHERE id = '{server_id}'")
    for path in ("/servers", "/servers/detail"):
        servers = listed(parent, f"reservation_id={build}", path=path)["servers"]
        assert len(servers) == 7
        assert [server["id"] for server in servers if server.get("_is_precooked")] == below
    details = listed(parent, f"reservation_id={build}", path="/servers/detail")["servers"]
    assert {server["OS-EXT-SRV-ATTR:reservation_id"] for server in details} == {build}


def test_plain_lists_are_not_recursive(family: Tree) -> None:
    family["left"].boot()
    listed(family["parent"], "all_tenants=1")
    assert family.asked == []


def test_members_see_only_servers_that_were_placed_for_them(family: Tree) -> None:
    parent, left = family["parent"], family["left"]
    mine, other, stray = (left.boot(user="admin") for _ in range(3))
    parent.place(mine, 1, user="demo", build_id="r-mine")
    parent.place(other, 1, user="admin", build_id="r-mine")
    for query in ("recurse_zones=1", "reservation_id=r-mine&recurse_zones=true"):
        found = ids(listed(parent, query, "demo"))
        assert other not in found
        assert stray not in found
    assert mine in ids(listed(parent, "recurse_zones=1", "demo"))
    assert set(ids(listed(parent, "recurse_zones=1&all_tenants=1"))) >= {mine, other, stray}


def test_members_without_placed_servers_cost_children_nothing(family: Tree) -> None:
    family["left"].boot()
    listed(family["parent"], "recurse_zones=1", "demo")
    listed(family["parent"], "reservation_id=r-none", "demo")
    assert family.asked == []


def test_servers_of_a_silent_zone_are_listed_as_unknown(family: Tree) -> None:
    parent, server_id = family["parent"], family["left"].boot(user="admin")
    parent.place(server_id, 1)
    family.cut("left")
    body = listed(parent, "recurse_zones=1", "demo")
    assert [(one["id"], one["status"]) for one in body["servers"] if one["id"] == server_id] == [(server_id, "UNKNOWN")]
    assert "unreachable_zones" not in body
    body = listed(parent, "recurse_zones=1&all_tenants=1")
    assert body["unreachable_zones"] == [{"id": 1, "api_url": "http://left/compute/v2.1"}]


def test_zone_does_not_tell_its_parent_of_children_that_are_silent(family: Tree) -> None:
    family.cut("grandchild")
    assert "unreachable_zones" not in listed(family["parent"], "recurse_zones=1&all_tenants=1")


def test_pages_lead_through_all_zones(family: Tree) -> None:
    parent = family["parent"]
    parent.boot(user="admin")
    family["left"].boot(), family["left"].boot(), family["right"].boot()
    whole = ids(listed(parent, "recurse_zones=1&all_tenants=1"))
    seen: list[str] = []
    query = "recurse_zones=1&all_tenants=1&limit=2"
    while True:
        body = listed(parent, query + (f"&marker={seen[-1]}" if seen else ""))
        seen += ids(body)
        if "servers_links" not in body:
            break
    assert seen == whole
    assert parent.ask("GET", f"/servers?recurse_zones=1&marker={'0' * 8}-0000-4000-8000-{'0' * 12}").status_code == 400


def test_no_host_is_named_in_lists(family: Tree) -> None:
    family["left"].boot()
    answer = family["parent"].ask("GET", "/servers/detail?recurse_zones=1&all_tenants=1", headers=LATEST)
    assert "left-n" not in answer.get_data(as_text=True)


def test_conditions_hold_in_children(family: Tree) -> None:
    wanted = family["right"].boot(name="needle")
    family["right"].boot(name="hay")
    assert ids(listed(family["parent"], "recurse_zones=1&all_tenants=1&name=needle")) == [wanted]
