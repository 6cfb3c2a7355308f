"""Leases from end to end on a real OpenStack, with `climate up` beside it."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from climate.cloud import ACTIVE
from tests.real_openstack import accounts, services
from tests.real_openstack.conftest import SECONDS, People
from tests.real_openstack.layout import PASSWORD
from tests.system.api_client import Api, moment
from tests.system.stack import Stack, await_so

pytestmark = [
    pytest.mark.campaign,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"),  # of the SDK
]

HOUR = 3600
SETTINGS = {
    "CLIMATE_CLOUD": "openstack",
    "CLIMATE_OPENSTACK_CLOUD": "admin",
    "CLIMATE_FAILED_AFTER": "5",
    "CLIMATE_EVACUATE_FAILED_HOSTS": "true",
    "CLIMATE_EVACUATE_AFTER": "1",
    "CLIMATE_MINUTES_BEFORE_END": "0",
    "CLIMATE_WEB_PROCESSES": "1",
}


@pytest.fixture
def stack(people: People, tmp_path: Path) -> Iterator[Stack]:
    """Run a climate whose hosts are those of the OpenStack."""
    path = str(accounts.clouds(people.layout))
    found = Stack(tmp_path / "home", {**SETTINGS, "CLIMATE_OPENSTACK_CONFIG": path}, arguments=())
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture
def api(stack: Stack) -> Iterator[Api]:
    """Return a client of climate's administrator; climate's project is the project `demo` of the OpenStack."""
    entry = yaml.safe_load((stack.home / "clouds.yaml").read_text(encoding="utf-8"))["clouds"]
    found = Api(stack.home, "climate" if "climate" in entry else next(iter(entry)))
    yield found
    found.close()


@pytest.fixture
def owner(api: Api, people: People) -> str:
    """Return a user of the OpenStack whose project has the id of climate's project."""
    api.sign_in()
    name = f"p{api.project_id[:8]}"
    services.add_project(people.layout, api.project_id, name)
    identity = people.admin.identity
    user = identity.create_user(name=name, password=PASSWORD, domain_id="default")
    role = identity.find_role("member")
    identity.assign_project_role_to_user(api.project_id, user.id, role.id)
    people.users[name] = accounts.connect(people.layout, name)
    return name


def ask(api: Api, method: str, path: str, body: Any = None) -> Any:
    answer = api.ask(method, f"/reservation/v1{path}", body)
    assert answer.status_code < 300, f"{method} {path}: {answer.status_code} {answer.text}"
    return answer.json() if answer.content else None


def register(api: Api, *hosts: str) -> dict[str, str]:
    return {host: ask(api, "POST", "/os-hosts", {"name": host})["host"]["id"] for host in hosts}


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


def test_a_lease_of_hosts_from_end_to_end(people: People, api: Api, owner: str) -> None:
    strange = people.boot("other")
    assert strange is not None
    first, second = sorted({"h1", "h2", "h3"} - {strange.hypervisor_hostname})
    register(api, first, second)
    refused = api.ask("POST", "/reservation/v1/os-hosts", {"name": strange.hypervisor_hostname})
    assert refused.status_code in (400, 409), refused.text
    assert pools(people)["freepool"] == {first, second}

    made = lease(api, hosts(1))
    pool = made["reservations"][0]["id"]
    (mine,) = pools(people)[pool]
    booted = people.boot(owner, pool)
    assert (booted.status, booted.hypervisor_hostname) == (ACTIVE, mine)
    assert people.boot(owner).hypervisor_hostname == strange.hypervisor_hostname
    assert people.boot("other", pool) is None
    assert people.boot("other").hypervisor_hostname == strange.hypervisor_hostname

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


def test_servers_of_a_failed_host_go_on_within_their_lease(people: People, api: Api, owner: str) -> None:
    numbers = register(api, "h1", "h2")
    for number in numbers.values():
        power = {"driver": "memory", "settings": {}}
        ask(api, "PUT", f"/os-hosts/{number}/power", power)
    made = lease(api, hosts(1))
    pool = made["reservations"][0]["id"]
    (mine,) = pools(people)[pool]
    server = people.boot(owner, pool)
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


def test_a_floating_ip_of_a_lease(people: People, api: Api, owner: str) -> None:
    network = people.admin.network.find_network(accounts.OUTSIDE).id
    ask(api, "POST", "/floatingips", {"floating_network_id": network, "floating_ip_address": "203.0.113.5"})
    made = lease(api, {"resource_type": "virtual:floatingip", "network_id": network, "amount": 1}, seconds=60)
    (ip,) = people.users[owner].network.ips()
    assert (ip.floating_ip_address, f"reservation:{made['reservations'][0]['id']}" in ip.tags) == ("203.0.113.5", True)
    await_lease(api, made["id"], "TERMINATED")
    assert list(people.admin.network.ips()) == []


def test_reserved_capacity_for_servers(people: People, api: Api, owner: str) -> None:
    register(api, "h1")
    size = {"vcpus": 1, "memory_mb": 256, "disk_gb": 1, "amount": 2, "affinity": None}
    made = lease(api, {"resource_type": "virtual:instance", **size})
    flavor = made["reservations"][0]["id"]
    served = [people.boot(owner, flavor=flavor) for _ in range(2)]
    assert [each.hypervisor_hostname for each in served] == ["h1", "h1"]
    assert people.boot(owner, flavor=flavor) is None, "both slots are used"
    assert people.boot(owner).hypervisor_hostname != "h1"
    ask(api, "PUT", f"/leases/{made['id']}", {"end_date": moment(time.time() + 8)})
    await_lease(api, made["id"], "TERMINATED")
    assert all(people.is_gone(each.id) for each in served)
    assert flavor not in pools(people)
