"""Leases from end to end on a real OpenStack, with `climate up` beside it: users and projects are Keystone's."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from climate.cloud import ACTIVE
from tests.real_openstack import accounts
from tests.real_openstack.conftest import SECONDS, People
from tests.system.api_client import moment
from tests.system.stack import Stack, await_so

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),  # of the SDK
]

HOUR = 3600
OWNER, STRANGER = accounts.LESSEES
OPENSTACK = str(Path(sys.executable).with_name("openstack"))
SETTINGS = {
    "CLIMATE_CLOUD": "openstack",
    "CLIMATE_OPENSTACK_CLOUD": "admin",
    "CLIMATE_IDENTITY": "keystone",
    "CLIMATE_FAILED_AFTER": "5",
    "CLIMATE_EVACUATE_FAILED_HOSTS": "true",
    "CLIMATE_EVACUATE_AFTER": "1",
    "CLIMATE_MINUTES_BEFORE_END": "0",
    "CLIMATE_WEB_PROCESSES": "1",
    "CLIMATE_KEYSTONE_SECONDS": "60",
}
CATALOG = {"service_type": "reservation", "interface": "public", "region_name": "RegionOne"}


@dataclass(frozen=True)
class Api:
    """The API of climate for a user of Keystone, at the URL of Keystone's catalog."""

    connection: Any

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Return the answer to a request."""
        sent = {"json": body, "raise_exc": False}
        return self.connection.session.request(path, method, endpoint_filter=CATALOG, **sent)


@pytest.fixture
def stack(people: People, tmp_path: Path) -> Iterator[Stack]:
    """Run a climate whose hosts and users are those of the OpenStack, and enter it into the catalog."""
    path = str(accounts.clouds(people.layout))
    own = {"CLIMATE_OPENSTACK_CONFIG": path, "OS_CLIENT_CONFIG_FILE": path}
    found = Stack(tmp_path / "home", {**SETTINGS, **own}, arguments=())
    try:
        found.start()
        admin(found, "openstack", "register", "--url", found.url, "--replace")
        yield found
    finally:
        found.stop()


@pytest.fixture
def api(stack: Stack, people: People) -> Api:
    """Return the API for the owner of the leases, whose token is newer than the entry of the catalog."""
    return Api(accounts.connect(people.layout, OWNER))


def admin(stack: Stack, *words: str) -> Any:
    """Run a command of climate as the administrator, and return what it shows."""
    done = stack.run("--os-cloud", "admin", *words, "-f", "json")
    assert done.returncode == 0, f"{words}: {done.stdout} {done.stderr}"
    return json.loads(done.stdout)


def ask(api: Api, method: str, path: str, body: Any = None) -> Any:
    answer = api.ask(method, path, body)
    assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer.json() if answer.content else None


def register(stack: Stack, *hosts: str) -> None:
    for host in hosts:
        admin(stack, "host", "create", host)


def lease(api: Api, reservation: dict[str, Any], seconds: float = HOUR) -> dict[str, Any]:
    """Create a lease that starts now; return it when it is active."""
    span = {"start_date": "now", "end_date": moment(time.time() + seconds)}
    body = {"name": f"lease-{time.monotonic_ns()}", "reservations": [reservation], "events": [], **span}
    made: dict[str, Any] = ask(api, "POST", "/leases", body)["lease"]
    return await_lease(api, made["id"], "ACTIVE")


def await_lease(api: Api, lease_id: str, status: str) -> dict[str, Any]:
    def found() -> Any:
        seen = ask(api, "GET", f"/leases/{lease_id}")["lease"]
        assert seen["status"] == status or seen["status"] != "ERROR", seen
        return seen if seen["status"] == status else None

    seen: dict[str, Any] = await_so(found, SECONDS, f"the status {status} of the lease")
    return seen


def hosts(count: int) -> dict[str, Any]:
    some = {"min": count, "max": count, "hypervisor_properties": "", "resource_properties": ""}
    return {"resource_type": "physical:host", **some}


def pools(people: People) -> dict[str, set[str]]:
    return {each.name: set(each.hosts or ()) for each in people.admin.compute.aggregates()}


def test_a_lease_of_hosts_from_end_to_end(people: People, stack: Stack, api: Api) -> None:
    strange = people.boot(STRANGER)
    assert strange is not None
    first, second = sorted({"h1", "h2", "h3"} - {strange.hypervisor_hostname})
    register(stack, first, second)
    used = stack.run("--os-cloud", "admin", "host", "create", strange.hypervisor_hostname)
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
    assert people.boot(OWNER).hypervisor_hostname == strange.hypervisor_hostname
    assert people.boot(STRANGER, pool) is None
    assert people.boot(STRANGER).hypervisor_hostname == strange.hypervisor_hostname

    for seconds in (2 * HOUR, HOUR / 2):
        end = moment(time.time() + seconds)
        changed = ask(api, "PUT", f"/leases/{made['id']}", {"end_date": end})["lease"]
        assert changed["end_date"][:16] == end[:16]
    ask(api, "PUT", f"/leases/{made['id']}", {"end_date": moment(time.time() + 8)})
    await_lease(api, made["id"], "TERMINATED")
    assert people.is_gone(booted.id)
    assert pools(people)["freepool"] == {first, second}
    assert pool not in pools(people)
    assert people.look(strange.id).status == ACTIVE
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


def test_a_floating_ip_of_a_lease(people: People, stack: Stack, api: Api) -> None:
    network = people.admin.network.find_network(accounts.OUTSIDE).id
    administrator = Api(accounts.connect(people.layout, "admin"))
    ask(administrator, "POST", "/floatingips", {"floating_network_id": network, "floating_ip_address": "203.0.113.5"})
    made = lease(api, {"resource_type": "virtual:floatingip", "network_id": network, "amount": 1}, seconds=60)
    (ip,) = people.users[OWNER].network.ips()
    assert (ip.floating_ip_address, f"reservation:{made['reservations'][0]['id']}" in ip.tags) == ("203.0.113.5", True)
    await_lease(api, made["id"], "TERMINATED")
    assert list(people.admin.network.ips()) == []


def test_reserved_capacity_for_servers(people: People, stack: Stack, api: Api) -> None:
    register(stack, "h1")
    size = {"vcpus": 1, "memory_mb": 256, "disk_gb": 1, "amount": 2, "affinity": None}
    made = lease(api, {"resource_type": "virtual:instance", **size})
    flavor = made["reservations"][0]["id"]
    served = [people.boot(OWNER, flavor=flavor) for _ in range(2)]
    assert [each.hypervisor_hostname for each in served] == ["h1", "h1"]
    assert people.boot(OWNER, flavor=flavor) is None, "both slots are used"
    assert people.boot(OWNER).hypervisor_hostname != "h1"
    ask(api, "PUT", f"/leases/{made['id']}", {"end_date": moment(time.time() + 8)})
    await_lease(api, made["id"], "TERMINATED")
    assert all(people.is_gone(each.id) for each in served)
    assert flavor not in pools(people)
