"""Shared leases on a real OpenStack: servers of further projects boot on the hosts and slots, as long as they may."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openstack.exceptions import BadRequestException, ForbiddenException, NotFoundException

from climate.cloud import ACTIVE
from tests.real_openstack import accounts, leases
from tests.real_openstack.conftest import MARKS, SECONDS, People
from tests.real_openstack.leases import OWNER, STRANGER, Api, ask, end, hosts, lease, pools, register
from tests.system.stack import Stack, await_so

pytestmark = MARKS

FURTHER, BYSTANDER = STRANGER, "demo"
SIZE = {"vcpus": 1, "memory_mb": 256, "disk_gb": 1, "affinity": None}


@pytest.fixture
def stack(people: People, tmp_path: Path) -> Iterator[Stack]:
    with leases.running(people, tmp_path / "home", {}) as made:
        register(made, "h1")
        yield made


@pytest.fixture
def api(stack: Stack, people: People) -> Api:
    return Api(accounts.connect(people.layout, OWNER))


def share(people: People, api: Api, made: dict[str, Any], *users: str) -> None:
    projects = [people.users[each].current_project_id for each in users]
    ask(api, "PUT", f"/leases/{made['id']}", {"sharing": {"projects": projects, "viewers": [], "extenders": []}})


def admitted(people: People, pool: str) -> list[str]:
    """Return the projects that Nova's filter for tenants admits to an aggregate."""
    (found,) = (each for each in people.admin.compute.aggregates() if each.name == pool)
    return str(found.metadata["filter_tenant_id"]).split(",")


def await_admitted(people: People, pool: str, *users: str) -> None:
    wanted = [people.users[each].current_project_id for each in users]
    await_so(lambda: admitted(people, pool) == wanted, SECONDS, f"the admission of {users}")


def test_a_further_project_boots_on_the_hosts_of_a_lease(people: People, api: Api) -> None:
    made = lease(api, hosts(1))
    pool = made["reservations"][0]["id"]
    assert people.boot(FURTHER, pool) is None
    share(people, api, made, FURTHER)
    await_admitted(people, pool, OWNER, FURTHER)
    mine, guest = (people.boot(each, pool) for each in (OWNER, FURTHER))
    assert [each.hypervisor_hostname for each in (mine, guest)] == ["h1", "h1"]
    assert people.boot(BYSTANDER, pool) is None
    assert {people.boot(FURTHER).hypervisor_hostname for _ in range(3)} == {"h2", "h3"}

    share(people, api, made)
    await_admitted(people, pool, OWNER)
    assert people.boot(FURTHER, pool) is None
    assert people.look(guest.id).status == ACTIVE, "servers stay until the end of the lease"
    assert people.boot(OWNER, pool).hypervisor_hostname == "h1"
    end(api, made)
    assert all(people.is_gone(each.id) for each in (mine, guest))
    assert {each.hypervisor_hostname for each in people.servers()} == {"h2", "h3"}
    assert pools(people)["freepool"] == {"h1"}


def test_a_further_project_boots_in_the_slots_of_a_lease(people: People, api: Api) -> None:
    made = lease(api, {"resource_type": "virtual:instance", "amount": 2, **SIZE})
    flavor = made["reservations"][0]["id"]
    refused = (BadRequestException, ForbiddenException, NotFoundException)
    with pytest.raises(refused):
        people.request(FURTHER, flavor=flavor)
    share(people, api, made, FURTHER)
    await_admitted(people, flavor, OWNER, FURTHER)
    guest = await_so(lambda: flavored(people, FURTHER, flavor), SECONDS, "the flavor of the further project")
    mine = people.boot(OWNER, flavor=flavor)
    assert [each.hypervisor_hostname for each in (mine, guest)] == ["h1", "h1"]
    assert [people.boot(each, flavor=flavor) for each in (OWNER, FURTHER)] == [None, None], "both slots are used"

    share(people, api, made)
    await_admitted(people, flavor, OWNER)
    await_so(lambda: not may_use(people, FURTHER, flavor), SECONDS, "the end of the flavor's access")
    with pytest.raises(refused):
        people.request(FURTHER, flavor=flavor)
    assert people.look(guest.id).status == ACTIVE
    end(api, made)
    assert people.servers() == []


def flavored(people: People, user: str, flavor: str) -> Any:
    """Boot a server with a flavor; None while the project may not use it."""
    return people.boot(user, flavor=flavor) if may_use(people, user, flavor) else None


def may_use(people: People, user: str, flavor: str) -> bool:
    return flavor in {each.id for each in people.users[user].compute.flavors()}
