"""Floating addresses by the Network API: taken, let to stand for servers' ports, given back; and who may."""

from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import event

from tests.api.compute.api_clients import Person, World, done
from tests.api.network.requests import N, booted, port, refused, taken


def put(person: Person, floating: dict[str, Any], status: int = 200, **body: Any) -> dict[str, Any]:
    answer = done(person("PUT", f"{N}/floatingips/{floating['id']}", {"floatingip": body}), status)
    return dict(answer["floatingip" if status == 200 else "NeutronError"])


def test_an_address_is_taken_and_given_back(member: Person, admin: Person, stranger: Person, pool: str) -> None:
    mine = taken(member, pool, description="web")
    assert (mine["floating_ip_address"], mine["status"], mine["port_id"]) == ("203.0.113.10", "DOWN", None)
    assert (mine["project_id"], mine["description"], mine["tags"]) == ("project", "web", [])
    other = taken(member, pool, floating_ip_address="203.0.113.14")
    assert other["floating_ip_address"] == "203.0.113.14"
    assert member.get(f"{N}/floatingips/{mine['id']}")["floatingip"] == mine
    assert member.get(f"{N}/floatingips?floating_ip_address=203.0.113.14")["floatingips"] == [other]
    assert put(member, mine, description="db")["description"] == "db"
    assert stranger.get(f"{N}/floatingips") == {"floatingips": []}
    for method, body in (("GET", None), ("PUT", {"floatingip": {"port_id": None}}), ("DELETE", None)):
        refused(stranger, method, f"floatingips/{mine['id']}", body, 404)
    for floating in (mine, other):
        done(member("DELETE", f"{N}/floatingips/{floating['id']}"), 204)
    assert admin.get(f"{N}/floatingips") == {"floatingips": []}


def test_an_address_stands_for_a_port(there: World, member: Person, pool: str, served: str) -> None:
    servers = [booted(there, member, served) for _ in range(2)]
    ports = [port(member, server_id, served) for server_id in servers]
    mine = taken(member, pool, port_id=ports[0]["id"])
    assert mine["fixed_ip_address"] == ports[0]["fixed_ips"][0]["ip_address"]
    assert mine["status"] == "ACTIVE"
    assert member.get(f"{N}/floatingips?port_id={ports[0]['id']}")["floatingips"] == [mine]
    shown = member.get(f"/compute/v2.1/servers/{servers[0]}")["server"]["addresses"]["dhcp"]
    assert [one["OS-EXT-IPS:type"] for one in shown] == ["fixed", "floating"]
    assert put(member, mine, port_id=ports[0]["id"])["port_id"] == ports[0]["id"]
    moved = put(member, mine, port_id=ports[1]["id"], fixed_ip_address=ports[1]["fixed_ips"][0]["ip_address"])
    assert moved["port_id"] == ports[1]["id"]
    second = taken(member, pool)
    assert "is already associated" in put(member, second, 409, port_id=ports[1]["id"])["message"]
    assert put(member, mine, port_id=None)["fixed_ip_address"] is None
    assert put(member, mine, port_id=None)["status"] == "DOWN"
    calls = there.here.count("compute_network_calls", "host = 'service-1'")
    put(member, mine, port_id=ports[1]["id"])
    assert there.here.count("compute_network_calls", "host = 'service-1'") == calls + 1
    member("DELETE", f"/compute/v2.1/servers/{servers[1]}")
    there.settle()
    assert member.get(f"{N}/floatingips/{mine['id']}")["floatingip"]["port_id"] is None


def test_what_no_port_can_have(there: World, member: Person, stranger: Person, pool: str, served: str) -> None:
    own = port(member, booted(there, member, served), served)
    flat = member.get(f"{N}/networks?name=private")["networks"][0]["id"]
    plain = port(member, booted(there, member, flat), flat)
    mine, theirs = taken(member, pool), taken(stranger, pool)
    assert "no fixed address" in put(stranger, theirs, 404, port_id=own["id"])["message"]
    assert "no fixed address" in put(member, mine, 404, port_id=str(uuid4()))["message"]
    assert "manager is flat" in put(member, mine, 404, port_id=plain["id"])["message"]
    assert put(member, mine, 404, port_id=own["id"], fixed_ip_address="10.20.0.9")["message"]
    assert "needs port_id" in put(member, mine, 400, fixed_ip_address="10.20.0.9")["message"]
    for wrong in ("nobody", 7, ["x"]):
        assert "port_id" in put(member, mine, 400, port_id=wrong)["message"]
    before = there.here.count("compute_floating_addresses", "project_id IS NOT NULL")
    body = {"floatingip": {"floating_network_id": pool, "port_id": str(uuid4())}}
    refused(member, "POST", "floatingips", body, 404)
    assert there.here.count("compute_floating_addresses", "project_id IS NOT NULL") == before


@pytest.mark.parametrize(
    ("more", "status", "word"),
    [
        ({"floating_network_id": None}, 400, "floating_network_id"),
        ({"floating_network_id": "public"}, 400, "UUID"),
        ({"floating_network_id": str(uuid4())}, 404, "could not be found"),
        ({"floating_ip_address": "203.0.113.99"}, 409, "not free"),
        ({"floating_ip_address": "nobody"}, 400, "IPv4"),
        ({"subnet_id": str(uuid4())}, 400, "subnet_id"),
        ({"tenant_id": "other"}, 403, "other projects"),
        ({"description": 7}, 400, "description"),
        ({"router_id": "r"}, 400, "router_id"),
    ],
)
def test_what_cannot_be_taken(member: Person, pool: str, more: dict[str, Any], status: int, word: str) -> None:
    body = {"floatingip": {"floating_network_id": pool, **more}}
    assert word in refused(member, "POST", "floatingips", body, status)
    assert member.get(f"{N}/floatingips") == {"floatingips": []}


def test_a_network_of_servers_is_no_pool(member: Person, served: str) -> None:
    body = {"floatingip": {"floating_network_id": served}}
    assert "is not external" in refused(member, "POST", "floatingips", body, 404)


def test_the_pool_and_the_quota_have_an_end(member: Person, admin: Person, pool: str) -> None:
    wanted = {"floatingip": {"floating_network_id": pool}}
    mine = [taken(member, pool) for _ in range(4)]
    done(admin("PUT", f"{N}/quotas/project", {"quota": {"floatingip": 4, "check_limit": True}}))
    assert "Address quota exceeded" in refused(member, "POST", "floatingips", wanted, 409)
    assert "used" in refused(admin, "PUT", "quotas/project", {"quota": {"floatingip": 3}}, 400)
    assert member.get(f"{N}/quotas/project/details")["quota"]["floatingip"] == {"limit": 4, "used": 4, "reserved": 0}
    done(admin("DELETE", f"{N}/quotas/project"), 204)
    assert member.get(f"{N}/quotas/project")["quota"]["floatingip"] == 10
    taken(member, pool)
    assert "Zero floating ips available" in refused(member, "POST", "floatingips", wanted, 409)
    done(member("DELETE", f"{N}/floatingips/{mine[0]['id']}"), 204)
    assert taken(member, pool)["floating_ip_address"] == "203.0.113.10"


@pytest.mark.parametrize("quota", [{"router": 5}, {"floatingip": "many"}, {"floatingip": -2}, {"force": "maybe"}, 7])
def test_what_is_no_quota(admin: Person, quota: Any) -> None:
    assert refused(admin, "PUT", "quotas/project", {"quota": quota}, 400)


def test_an_administrator_takes_one_for_a_project(admin: Person, member: Person, pool: str) -> None:
    theirs = taken(admin, pool, project_id="project")
    assert [row["id"] for row in member.get(f"{N}/floatingips")["floatingips"]] == [theirs["id"]]
    assert put(admin, theirs, description="x")["description"] == "x"


def test_an_administrator_takes_one_that_the_pool_does_not_hand_out(
    there: World, admin: Person, member: Person, pool: str
) -> None:
    body = {"floatingip": {"floating_network_id": pool, "floating_ip_address": "203.0.113.99"}}
    assert "not free" in refused(member, "POST", "floatingips", body, 409)
    assert there.here.count("compute_floating_addresses") == 5
    for address in ("198.51.100.1", "203.0.113.0", "203.0.113.255", "203.0.113.1"):
        body["floatingip"]["floating_ip_address"] = address
        assert "not free, or not one of" in refused(admin, "POST", "floatingips", body, 409)
    subnet = admin.get(f"{N}/subnets?network_id={pool}")
    theirs = taken(admin, pool, project_id="project", floating_ip_address="203.0.113.99", description="lent")
    assert (theirs["floating_ip_address"], theirs["project_id"], theirs["tags"]) == ("203.0.113.99", "project", [])
    body["floatingip"]["floating_ip_address"] = "203.0.113.99"
    assert "not free" in refused(admin, "POST", "floatingips", body, 409)
    assert done(admin("PUT", f"{N}/floatingips/{theirs['id']}/tags", {"tags": ["b", "a"]})) == {"tags": ["a", "b"]}
    assert [row["id"] for row in admin.get(f"{N}/floatingips?tags=a")["floatingips"]] == [theirs["id"]]
    assert admin.get(f"{N}/subnets?network_id={pool}") == subnet, "the pool does not hand it out"
    done(member("DELETE", f"{N}/floatingips/{theirs['id']}"), 204)
    assert there.here.count("compute_floating_addresses") == 5
    assert taken(admin, pool, floating_ip_address="203.0.113.12")["floating_ip_address"] == "203.0.113.12"
    assert there.here.count("compute_floating_addresses") == 5


def test_an_address_taken_by_itself_stays_when_its_pool_gets_it(there: World, admin: Person, pool: str) -> None:
    taken(admin, pool, floating_ip_address="203.0.113.15")
    single = taken(admin, pool, floating_ip_address="203.0.113.16")
    own = admin.get(f"{N}/subnets?network_id={pool}")["subnets"][0]["id"]
    stretches = {"allocation_pools": [{"start": "203.0.113.10", "end": "203.0.113.16"}]}
    shown = done(admin("PUT", f"{N}/subnets/{own}", {"subnet": stretches}))["subnet"]
    assert shown["allocation_pools"] == stretches["allocation_pools"]
    done(admin("DELETE", f"{N}/floatingips/{single['id']}"), 204)
    assert there.here.count("compute_floating_addresses", "project_id IS NULL") == 6


@pytest.mark.parametrize("wrong", [None, {}, {"tags": "a"}, {"tags": [1]}, {"tags": ["a\nb"]}, {"tags": [], "x": 1}])
def test_tags_that_are_none(member: Person, stranger: Person, pool: str, wrong: Any) -> None:
    mine = taken(member, pool)
    assert "tags" in refused(member, "PUT", f"floatingips/{mine['id']}/tags", wrong or {}, 400)
    refused(stranger, "PUT", f"floatingips/{mine['id']}/tags", {"tags": ["x"]}, 404)


def test_readers_look_only(reader: Person, member: Person, pool: str) -> None:
    mine = taken(member, pool)
    assert len(reader.get(f"{N}/floatingips")["floatingips"]) == 1
    refused(reader, "POST", "floatingips", {"floatingip": {"floating_network_id": pool}}, 403)
    refused(reader, "DELETE", f"floatingips/{mine['id']}", None, 403)


def test_lists_cost_the_same_however_long(there: World, member: Person, admin: Person, pool: str) -> None:
    engine = there.here.compute.engine
    asked: list[str] = []

    def note(*given: Any) -> None:
        asked.append(given[2])

    def cost(person: Person, path: str) -> int:
        asked.clear()
        person.get(f"{N}/{path}")
        return len(asked)

    paths = ("floatingips", "networks", "subnets", "ports")
    event.listen(engine, "before_cursor_execute", note)
    try:
        taken(member, pool)
        before = [cost(member, path) for path in paths]
        for _ in range(4):
            taken(member, pool)
        member.booted(min_count=3, max_count=3)
        assert [cost(member, path) for path in paths] == before
        assert max(before) <= 3
    finally:
        event.remove(engine, "before_cursor_execute", note)


def test_every_port_is_there_however_many_there_are(there: World, admin: Person, member: Person, served: str) -> None:
    own = port(member, booted(there, member, served), served)
    copied = "jsonb_populate_record(s, jsonb_build_object('id', '00000000-0000-4000-8000-' || lpad(n::text, 12, '0')))"
    with there.here.compute.engine.begin() as conn:
        conn.exec_driver_sql(
            f"INSERT INTO compute_servers SELECT ({copied}).* FROM compute_servers s, generate_series(1, 1001) AS n"
        )
        conn.exec_driver_sql(
            f"""INSERT INTO compute_vifs (id, mac, network_id, server_id, place)
                SELECT gen_random_uuid(), id::text, '{served}', id, 0
                FROM compute_servers WHERE id <> '{own["device_id"]}'"""
        )
    page = admin.get(f"{N}/ports")["ports"]
    rest = admin.get(f"{N}/ports?marker={page[-1]['id']}")["ports"]
    assert (len(page), len(rest)) == (1000, 2)
    assert admin.get(f"{N}/ports/{rest[-1]['id']}")["port"] == rest[-1]
    assert member.get(f"{N}/ports?device_id={own['device_id']}")["ports"] == [own]
    assert member.get(f"{N}/ports?device_id=nobody") == {"ports": []}
    refused(member, "GET", "ports/nobody", None, 404)
