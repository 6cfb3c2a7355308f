"""Servers on leases: booted on lent hosts, or asleep until a lease of their own."""

from typing import Any

from climate.service.host_operations import recycling
from climate.service.journal import consistency_check
from climate.service.subleases import round as subleases
from tests.api.compute.api_clients import Person, World, done, hours_away, message
from tests.system.stack import await_so

SERVERS = "/compute/v2.1/servers"


def test_a_lease_of_hosts_from_boot_to_end(there: World, member: Person, stranger: Person) -> None:
    body = {
        "name": "l",
        "start_date": "now",
        "end_date": hours_away(2),
        "reservations": [
            {
                "resource_type": "physical:host",
                "min": 1,
                "max": 1,
                "hypervisor_properties": "",
                "resource_properties": "",
            }
        ],
        "events": [],
    }
    lease = done(member("POST", "/reservation/v1/leases", body), 201)["lease"]
    reservation = lease["reservations"][0]["id"]
    assert "starts at" in message(member.boot({"reservation": reservation}), 409, "conflictingRequest")
    there.settle()
    assert member.get(f"/reservation/v1/leases/{lease['id']}")["lease"]["status"] == "ACTIVE"
    mine = member.booted({"reservation": reservation})
    ordinary = member.booted()
    assert message(stranger.boot({"reservation": reservation}), 404, "itemNotFound")
    there.settle()
    admin = Person(there.app, "admin")
    where = {one["id"]: one["OS-EXT-SRV-ATTR:hypervisor_hostname"] for one in _all(admin)}
    assert where[mine].startswith("gpu-")
    assert where[ordinary] == "std-1"
    pools = {one["name"]: one["hosts"] for one in admin.get("/compute/v2.1/os-aggregates")["aggregates"]}
    assert pools[reservation] == [where[mine]]
    assert done(member("DELETE", f"/reservation/v1/leases/{lease['id']}"), 204) is None
    for _ in range(3):
        there.at_once("end_lease")
    assert message(member("GET", f"{SERVERS}/{mine}"), 404, "itemNotFound")
    assert member.status(ordinary) == "ACTIVE"
    pools = {one["name"]: one["hosts"] for one in admin.get("/compute/v2.1/os-aggregates")["aggregates"]}
    assert pools == {"freepool": ["gpu-1", "gpu-2"]}


def test_a_server_that_sleeps_until_its_lease(there: World, member: Person) -> None:
    server_id = member.booted({"reserved": "True", "lease_params": f'{{"name": "nap", "end": "{hours_away(2)}"}}'})
    there.here.settle()
    shown = member.get(f"{SERVERS}/{server_id}")["server"]
    assert (shown["status"], shown["OS-EXT-STS:vm_state"]) == ("RESERVED", "reserved")
    assert (shown["OS-EXT-STS:task_state"], shown["OS-EXT-STS:power_state"]) == (None, 0)
    assert shown["addresses"]["private"]
    assert message(member.act(server_id, "os-start"), 409, "conflictingRequest")
    leases = member.get("/reservation/v1/leases")["leases"]
    assert [(lease["name"], lease["reservations"][0]["resource_id"]) for lease in leases] == [("nap", server_id)]
    there.at_once("start_lease")
    assert member.status(server_id) == "ACTIVE"


def test_a_sleeping_server_that_its_user_deletes_takes_its_lease_along(there: World, member: Person) -> None:
    server_id = member.booted({"reserved": "True", "lease_params": f'{{"name": "nap", "end": "{hours_away(2)}"}}'})
    there.here.settle()
    lease_id = member.get("/reservation/v1/leases")["leases"][0]["id"]
    assert done(member("DELETE", f"{SERVERS}/{server_id}"), 204) is None
    for _ in range(3):
        there.at_once("end_lease")
    assert message(member("GET", f"{SERVERS}/{server_id}"), 404, "itemNotFound")
    assert member("GET", f"/reservation/v1/leases/{lease_id}").status_code == 404
    assert Person(there.app, "admin").get("/reservation/v1/events?status=ERROR")["events"] == []


def test_a_sleeping_server_that_is_locked_keeps_its_lease(there: World, member: Person) -> None:
    server_id = member.booted({"reserved": "True", "lease_params": f'{{"name": "nap", "end": "{hours_away(2)}"}}'})
    there.here.settle()
    before = member.get("/reservation/v1/leases")["leases"][0]
    assert member.act(server_id, "lock").status_code == 202
    assert "is locked" in message(member("DELETE", f"{SERVERS}/{server_id}"), 409, "conflictingRequest")
    assert member.get("/reservation/v1/leases")["leases"] == [before]
    there.at_once("start_lease")
    assert member.status(server_id) == "ACTIVE"


def test_a_sleeping_server_needs_room_now(there: World, member: Person) -> None:
    params = f'{{"end": "{hours_away(2)}"}}'
    answer = member.boot({"reserved": True, "lease_params": params}, flavorRef="5")
    assert "filter" in message(answer, 409, "conflictingRequest")
    assert there.here.count("compute_servers") == 0
    assert there.here.count("compute_addresses", "server_id IS NOT NULL") == 0
    assert member.get("/reservation/v1/leases")["leases"] == []


def _all(admin: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = admin.get(f"{SERVERS}/detail?all_tenants=1")["servers"]
    return found


def test_servers_of_further_projects_run_on_a_shared_lease_until_its_end(
    there: World, member: Person, stranger: Person
) -> None:
    hosts = {"resource_type": "physical:host", "min": 1, "max": 1}
    room = {"resource_type": "virtual:instance", "amount": 2, "vcpus": 1, "memory_mb": 256, "disk_gb": 1}
    sharing = {"projects": ["other-project"]}
    body = {"name": "l", "start_date": "now", "end_date": hours_away(2), "events": [], "sharing": sharing}
    lease = done(member("POST", "/reservation/v1/leases", {**body, "reservations": [hosts, room]}), 201)["lease"]
    path, admin = f"/reservation/v1/leases/{lease['id']}", Person(there.app, "admin")
    whole, slots = (one["id"] for one in lease["reservations"])
    there.settle()
    servers = {person.name: person.booted({"reservation": whole}) for person in (member, stranger)}
    servers["in a slot"] = stranger.booted(flavorRef=slots)
    there.settle()
    where = {one["id"]: one["OS-EXT-SRV-ATTR:hypervisor_hostname"] for one in _all(admin)}
    assert where[servers["member"]] == where[servers["stranger"]]
    assert stranger.status(servers["in a slot"]) == "ACTIVE"
    done(member("PUT", path, {"sharing": {}}))
    assert message(stranger.boot({"reservation": whole}), 404, "itemNotFound")
    there.settle()
    late = stranger.boot(flavorRef=slots)
    assert late.status_code in (400, 404)
    assert [stranger.status(servers[name]) for name in ("stranger", "in a slot")] == ["ACTIVE", "ACTIVE"]
    done(member("DELETE", path), 204)
    for _ in range(3):
        there.at_once("end_lease")
    assert _all(admin) == []


def test_a_host_goes_to_a_sub_lease_and_returns(there: World, member: Person, stranger: Person) -> None:
    both = {"resource_type": "physical:host", "min": 2, "max": 2}
    body = {"name": "long", "start_date": "now", "end_date": hours_away(5), "events": [], "reservations": [both]}
    parent = done(member("POST", "/reservation/v1/leases", body), 201)["lease"]
    path, whole = f"/reservation/v1/leases/{parent['id']}", parent["reservations"][0]["id"]
    there.settle()
    mine = member.booted({"reservation": whole})
    there.settle()
    used = _hosts_of(there)[mine]
    (free,) = set(_pools(there)[whole]) - {used}

    given = {"name": "course", "project_id": "other-project", "end_date": hours_away(2), "hosts": 1}
    lease = done(member("POST", f"{path}/subleases", given), 201)["lease"]
    own = lease["reservations"][0]["id"]
    _rounds(there)
    assert stranger.get(f"/reservation/v1/leases/{lease['id']}")["lease"]["status"] == "ACTIVE"
    assert (_pools(there)[whole], _pools(there)[own]) == ([used], [free])
    theirs = stranger.booted({"reservation": own})
    assert message(member.boot({"reservation": own}), 403, "forbidden")
    assert message(stranger.boot({"reservation": whole}), 404, "itemNotFound")
    second = member.booted({"reservation": whole})
    there.settle()
    assert [_hosts_of(there)[one] for one in (theirs, second)] == [free, used]

    done(stranger("DELETE", f"/reservation/v1/leases/{lease['id']}"), 204)
    await_so(lambda: _rounds(there) or len(_pools(there)[whole]) == 2, 60, "the host is back")
    assert message(stranger("GET", f"{SERVERS}/{theirs}"), 404, "itemNotFound")
    assert sorted(_pools(there)[whole]) == sorted([used, free])
    third = member.booted({"reservation": whole, "different_host": [mine, second]})
    there.settle()
    assert _hosts_of(there)[third] == free
    assert [member.status(one) for one in (mine, second, third)] == ["ACTIVE"] * 3
    done(member("DELETE", path), 204)
    await_so(lambda: _rounds(there) or sorted(_pools(there)["freepool"]) == ["gpu-1", "gpu-2"], 60, "all are back")
    assert consistency_check.differences(there.climate) == []


def _rounds(there: World) -> None:
    """What the rounds over hosts do for sub-leases, and the workers after them."""
    for _ in range(2):
        subleases.run_round(there.climate)
        recycling.run_round(there.climate)
        there.settle()


def _pools(there: World) -> dict[str, list[str]]:
    aggregates = Person(there.app, "admin").get("/compute/v2.1/os-aggregates")["aggregates"]
    return {one["name"]: one["hosts"] for one in aggregates}


def _hosts_of(there: World) -> dict[str, str]:
    """Server -> its host."""
    return {one["id"]: one["OS-EXT-SRV-ATTR:hypervisor_hostname"] for one in _all(Person(there.app, "admin"))}
