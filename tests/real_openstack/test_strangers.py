"""Servers of others on hosts for leases, on a real OpenStack: they stay, and leases wait until they are gone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from climate.cloud import ACTIVE, FREEPOOL
from tests.real_openstack import accounts, leases, strange
from tests.real_openstack.conftest import MARKS, SECONDS, People
from tests.real_openstack.leases import (
    OWNER,
    STRANGER,
    Api,
    ask,
    await_lease,
    hosts,
    lease,
    order,
    pools,
    register,
    shorten,
)
from tests.system.stack import Stack, await_so

pytestmark = MARKS


@pytest.fixture
def open_pool(people: People) -> None:
    """Create the reservation pool before climate does, as Blazar would: open to every project."""
    compute = people.admin.compute
    compute.set_aggregate_metadata(compute.create_aggregate(name=FREEPOOL), rack="7")


@pytest.fixture
def stack(people: People, open_pool: None, tmp_path: Path) -> Iterator[Stack]:
    with leases.running(people, tmp_path / "home", {}) as made:
        yield made


@pytest.fixture
def api(stack: Stack, people: People) -> Api:
    return Api(accounts.connect(people.layout, OWNER))


def pool(people: People, name: str) -> Any:
    (found,) = (each for each in people.admin.compute.aggregates() if each.name == name)
    return found


def test_a_host_with_a_strange_server_is_not_lent(people: People, stack: Stack, api: Api) -> None:
    register(stack, "h1")
    assert dict(pool(people, FREEPOOL).metadata) == {"filter_tenant_id": "climate:nobody", "rack": "7"}
    assert people.boot(STRANGER).hypervisor_hostname != "h1"
    theirs = strange.force(people, "h1")
    made = order(api, hosts(1))

    def waits() -> bool:
        seen = ask(api, "GET", f"/leases/{made['id']}")["lease"]
        return "servers that are not of the lease are still on h1" in seen.get("status_reason", "")

    await_so(waits, SECONDS, "the reason why the lease waits")
    assert pools(people)[FREEPOOL] == {"h1"}
    assert people.look(theirs).status == ACTIVE
    people.delete(theirs)
    reservation = await_lease(api, made["id"], "ACTIVE")["reservations"][0]["id"]
    assert people.boot(OWNER, reservation).hypervisor_hostname == "h1"


def test_a_strange_server_outlasts_the_lease_of_its_host(people: People, stack: Stack, api: Api) -> None:
    register(stack, "h1")
    made = lease(api, hosts(1))
    reservation = made["reservations"][0]["id"]
    mine = people.boot(OWNER, reservation)
    theirs = strange.force(people, "h1")
    shorten(api, made)
    await_so(lambda: people.is_gone(mine.id), SECONDS, "the deletion of the server of the lease")
    assert people.boot(OWNER, reservation) is None
    seen = ask(api, "GET", f"/leases/{made['id']}")["lease"]
    assert seen["status"] != "TERMINATED"
    assert (people.look(theirs).status, pools(people)[reservation]) == (ACTIVE, {"h1"})
    people.delete(theirs)
    await_lease(api, made["id"], "TERMINATED")
    assert pools(people)[FREEPOOL] == {"h1"}
