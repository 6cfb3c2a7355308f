"""Leases from end to end on a real OpenStack, with `climate up` beside it: users and projects are Keystone's."""

import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from openstack.exceptions import BadRequestException, ForbiddenException, NotFoundException

from climate.cloud import ACTIVE
from climate.cloud.openstack.http import MICROVERSIONS
from climate.cloud.openstack.slots import class_of
from tests.real_openstack import accounts, leases, services, strange
from tests.real_openstack.conftest import MARKS, SECONDS, People
from tests.real_openstack.leases import (
    HOUR,
    OWNER,
    STRANGER,
    Api,
    admin,
    ask,
    end,
    hosts,
    lease,
    pools,
    register,
)
from tests.system.api_client import moment
from tests.system.stack import Stack, await_so

pytestmark = MARKS

REQUESTS = 8
"""Number of servers that are requested at once; the quota of a project is 10."""
OPENSTACK = str(Path(sys.executable).with_name("openstack"))


@pytest.fixture
def strange_server(people: People) -> Iterator[Any]:
    """Return a server of somebody else, on h3; it and all else that others have is untouched afterwards."""
    strange.create(people)
    before = strange.seen(people)
    assert all(len(each) == 1 for each in before.values()), before
    yield people.look(before["servers"][0][0])
    assert strange.seen(people) == before


@pytest.fixture
def stack(people: People, strange_server: Any, tmp_path: Path) -> Iterator[Stack]:
    with leases.running(people, tmp_path / "home", {}) as made:
        yield made


@pytest.fixture
def api(stack: Stack, people: People) -> Api:
    """Return the API for the owner of the leases, whose token is newer than the entry of the catalog."""
    return Api(accounts.connect(people.layout, OWNER))


def test_a_lease_of_hosts_from_end_to_end(people: People, stack: Stack, api: Api, strange_server: Any) -> None:
    first, second, third = "h1", "h2", strange_server.hypervisor_hostname
    register(stack, first, second)
    used = stack.run("--os-cloud", "admin", "host", "create", third)
    assert (used.returncode != 0, "only an empty host" in used.stderr) == (True, True), used.stderr
    assert api.ask("POST", "/os-hosts", {"name": "h1"}).status_code == 403, "the owner is no administrator"
    assert pools(people)["freepool"] == {first, second}

    made = lease(api, hosts(1))
    assert made["project_id"] == people.users[OWNER].current_project_id
    stranger = Api(accounts.connect(people.layout, STRANGER))
    assert stranger.ask("GET", f"/leases/{made['id']}").status_code == 404
    assert ask(stranger, "GET", "/leases") == {"leases": []}
    pool = made["reservations"][0]["id"]
    (mine,) = pools(people)[pool]
    booted = people.boot(OWNER, pool)
    assert (booted.status, booted.hypervisor_hostname) == (ACTIVE, mine)
    assert people.boot(OWNER).hypervisor_hostname == third
    assert people.boot(STRANGER, pool) is None
    assert people.boot(STRANGER).hypervisor_hostname == third

    for seconds in (2 * HOUR, HOUR / 2):
        over = moment(time.time() + seconds)
        changed = ask(api, "PUT", f"/leases/{made['id']}", {"end_date": over})["lease"]
        assert changed["end_date"][:16] == over[:16]
    end(api, made)
    assert people.is_gone(booted.id)
    assert pools(people)["freepool"] == {first, second}
    assert pool not in pools(people)
    assert {each.hypervisor_hostname for each in people.servers()} == {third}
    assert len(people.servers()) == 3


def test_a_lease_by_the_client_of_openstack(people: People, stack: Stack) -> None:
    """The client is unmodified, and has nothing but an entry of clouds.yaml."""
    register(stack, "h1")

    def client(*words: str) -> str:
        done = stack.command(OPENSTACK, "--os-cloud", OWNER, *words, seconds=SECONDS)
        assert done.returncode == 0, f"{words}: {done.stdout} {done.stderr}"
        return done.stdout

    def read(*words: str) -> Any:
        return json.loads(client(*words, "-f", "json"))

    end = time.strftime("%Y-%m-%d %H:%M", time.gmtime(time.time() + HOUR))
    wanted = ("--reservation", "resource_type=physical:host,min=1,max=1", "--end-date", end)
    client("reservation", "lease", "create", *wanted, "mine")

    def found() -> Any:
        seen = read("reservation", "lease", "show", "mine")
        return seen if seen["status"] == "ACTIVE" else None

    seen = await_so(found, SECONDS, "the start of the lease")
    assert seen["project_id"] == people.users[OWNER].current_project_id
    pool = json.loads(seen["reservations"])["id"]
    size = ("--image", accounts.IMAGE, "--flavor", accounts.FLAVOR, "--nic", "none", "--hint", f"reservation={pool}")
    server = read("server", "create", *size, "--wait", "one")
    assert (server["status"], people.look(server["id"]).hypervisor_hostname) == (ACTIVE, "h1")
    client("reservation", "lease", "delete", "mine")
    await_so(lambda: people.is_gone(server["id"]), SECONDS, "the deletion of the server")
    assert read("reservation", "lease", "list") == []


def test_servers_of_a_failed_host_go_on_within_their_lease(people: People, stack: Stack, api: Api) -> None:
    for host in ("h1", "h2"):
        register(stack, host)
        admin(stack, "host", "power", "set", host, "--driver", "memory")
    made = lease(api, hosts(1))
    pool = made["reservations"][0]["id"]
    (mine,) = pools(people)[pool]
    server = people.boot(OWNER, pool)
    assert server.hypervisor_hostname == mine
    people.layout.stop(mine)
    (other,) = {"h1", "h2"} - {mine}

    def is_evacuated() -> bool:
        seen = people.look(server.id)
        return seen.hypervisor_hostname == other and seen.task_state is None

    await_so(is_evacuated, SECONDS, "the evacuation")
    assert people.look(server.id).status == ACTIVE
    assert pools(people)[pool] == {other}
    assert pools(people)["failed"] == {mine}
    assert people.boot(OWNER, pool).hypervisor_hostname == other

    services.start_host(people.layout, mine)
    await_so(lambda: pools(people)["freepool"] == {mine}, SECONDS, "the return of the failed host")
    assert pools(people)[pool] == {other}
    assert people.look(server.id).hypervisor_hostname == other
    end(api, made)
    assert people.is_gone(server.id)
    assert pools(people)["freepool"] == {"h1", "h2"}


def test_a_floating_ip_of_a_lease(people: People, stack: Stack, api: Api) -> None:
    network = people.admin.network.find_network(accounts.OUTSIDE).id
    administrator = Api(accounts.connect(people.layout, "admin"))
    ask(administrator, "POST", "/floatingips", {"floating_network_id": network, "floating_ip_address": "203.0.113.5"})
    made = lease(api, {"resource_type": "virtual:floatingip", "network_id": network, "amount": 1})
    (ip,) = people.users[OWNER].network.ips()
    assert (ip.floating_ip_address, f"reservation:{made['reservations'][0]['id']}" in ip.tags) == ("203.0.113.5", True)
    end(api, made)
    assert [each.floating_ip_address for each in people.admin.network.ips()] == [strange.ADDRESS]


@pytest.mark.parametrize("kind", ["virtual:instance", "flavor:instance"])
def test_reserved_capacity_for_servers(people: People, stack: Stack, api: Api, kind: str) -> None:
    register(stack, "h1")
    wanted = (
        {"vcpus": 1, "memory_mb": 256, "disk_gb": 1} if kind == "virtual:instance" else {"flavor_id": people.flavor}
    )
    made = lease(api, {"resource_type": kind, "amount": 2, "affinity": None, **wanted})
    flavor = made["reservations"][0]["id"]
    served = [people.boot(OWNER, flavor=flavor) for _ in range(2)]
    assert [each.hypervisor_hostname for each in served] == ["h1", "h1"]
    assert people.boot(OWNER, flavor=flavor) is None, "both slots are used"
    assert people.boot(OWNER).hypervisor_hostname != "h1"
    with pytest.raises((BadRequestException, ForbiddenException, NotFoundException)):
        people.request(STRANGER, flavor=flavor)
    end(api, made)
    assert all(people.is_gone(each.id) for each in served)
    assert flavor not in pools(people)
    assert people.boot(OWNER).hypervisor_hostname != "h1"


def test_simultaneous_requests_do_not_exceed_the_slots(people: People, stack: Stack, api: Api) -> None:
    """Each passes the filters before another is on its host: Placement counts them."""
    for host in ("h1", "h2"):
        register(stack, host)
    size = {"vcpus": 1, "memory_mb": 256, "disk_gb": 1, "amount": 3, "affinity": None}
    made = lease(api, {"resource_type": "virtual:instance", **size})
    flavor = made["reservations"][0]["id"]
    for _ in range(3):
        with ThreadPoolExecutor(REQUESTS) as pool:
            requested = list(pool.map(lambda _: people.request(OWNER, flavor=flavor), range(REQUESTS)))
        seen = [people.await_status(each, ACTIVE, "ERROR") for each in requested]
        assert sorted(each.status for each in seen) == [ACTIVE] * 3 + ["ERROR"] * (REQUESTS - 3)
        for each in requested:
            people.delete(each)
    unit = class_of(flavor)
    assert unit in classes(people)
    ask(api, "DELETE", f"/leases/{made['id']}")
    await_so(lambda: api.ask("GET", f"/leases/{made['id']}").status_code == 404, SECONDS, "the end of the lease")
    assert unit not in classes(people)


def classes(people: People) -> set[str]:
    """Return the resource classes of Placement."""
    found = people.admin.placement.get("/resource_classes", microversion=MICROVERSIONS["placement"]).json()
    return {each["name"] for each in found["resource_classes"]}
