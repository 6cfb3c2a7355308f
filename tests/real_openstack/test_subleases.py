"""Sub-leases on a real OpenStack: hosts of a lease serve another project's servers, and nobody else's meanwhile."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from climate.cloud import ACTIVE
from tests.real_openstack import accounts, leases
from tests.real_openstack.conftest import MARKS, SECONDS, People
from tests.real_openstack.leases import OWNER, STRANGER, Api, ask, await_lease, end, hosts, lease, pools, register
from tests.system.api_client import moment
from tests.system.stack import Stack, await_so

pytestmark = MARKS

SETTINGS = {"CLIMATE_PREEMPTION_NOTICE": "1", "CLIMATE_RECYCLE_LEAD": "2"}
"""Seconds in which hosts are taken from the parent."""
BYSTANDER = "demo"


@pytest.fixture
def stack(people: People, tmp_path: Path) -> Iterator[Stack]:
    with leases.running(people, tmp_path / "home", SETTINGS) as made:
        register(made, "h1", "h2")
        yield made


@pytest.fixture
def api(stack: Stack, people: People) -> Api:
    return Api(accounts.connect(people.layout, OWNER))


@pytest.fixture
def theirs(stack: Stack, people: People) -> Api:
    """Return the API for the project that gets hosts."""
    return Api(accounts.connect(people.layout, STRANGER))


def sublet(people: People, api: Api, parent: dict[str, Any], **more: Any) -> dict[str, Any]:
    span = {"start_date": "now", "end_date": moment(time.time() + 600)}
    body = {"name": "course", "project_id": people.users[STRANGER].current_project_id, **span, **more}
    made: dict[str, Any] = ask(api, "POST", f"/leases/{parent['id']}/subleases", body)["lease"]
    return made


def pool_of(lease: dict[str, Any]) -> str:
    return str(lease["reservations"][0]["id"])


def test_a_host_of_a_lease_serves_the_project_of_its_sub_lease(people: People, api: Api, theirs: Api) -> None:
    bystander = people.boot(BYSTANDER)
    parent = lease(api, hosts(2))
    own = pool_of(parent)
    mine = people.boot(OWNER, own)
    kept, (given,) = mine.hypervisor_hostname, {"h1", "h2"} - {mine.hypervisor_hostname}

    made = sublet(people, api, parent, hosts=1)
    course = pool_of(await_lease(theirs, made["id"], "ACTIVE"))
    assert [pools(people)[each] for each in (own, course)] == [{kept}, {given}], "the host without servers is given"
    assert {people.boot(STRANGER, course).hypervisor_hostname for _ in range(2)} == {given}
    assert people.boot(STRANGER, own) is None
    assert people.boot(STRANGER).hypervisor_hostname == "h3"
    assert {people.boot(OWNER, own).hypervisor_hostname for _ in range(2)} == {kept}
    assert people.boot(OWNER, course) is None
    assert people.boot(OWNER).hypervisor_hostname == "h3"
    assert [people.boot(BYSTANDER, each) for each in (own, course)] == [None, None]
    booted = {each.id: each for each in people.servers()}

    end(theirs, made)
    await_so(lambda: pools(people).get(own) == {"h1", "h2"}, SECONDS, "the return of the host")
    assert course not in pools(people)
    left = {each.id for each in people.servers()}
    assert left == {one for one, each in booted.items() if each.hypervisor_hostname != given}
    assert people.boot(STRANGER, own) is None
    assert "h3" not in {people.boot(OWNER, own).hypervisor_hostname for _ in range(2)}
    assert [people.look(each.id).status for each in (bystander, mine)] == [ACTIVE, ACTIVE]

    end(api, parent)
    assert pools(people)["freepool"] == {"h1", "h2"}
    assert {each.hypervisor_hostname for each in people.servers()} == {"h3"}
    assert people.look(bystander.id).status == ACTIVE


def test_servers_of_the_parent_leave_a_host_before_its_sub_lease(people: People, api: Api, theirs: Api) -> None:
    parent = lease(api, hosts(2))
    own = pool_of(parent)
    servers = [people.boot(OWNER, own) for _ in range(2)]
    assert {each.hypervisor_hostname for each in servers} == {"h1", "h2"}

    made = sublet(people, api, parent, host_names=["h1"], start_date=moment(time.time() + 40))
    course = pool_of(await_lease(theirs, made["id"], "ACTIVE"))
    assert [pools(people)[each] for each in (own, course)] == [{"h2"}, {"h1"}]
    (left,) = people.servers()
    assert (left.status, left.hypervisor_hostname) == (ACTIVE, "h2")
    assert people.boot(OWNER, own).hypervisor_hostname == "h2"
    guest = people.boot(STRANGER, course)
    assert guest.hypervisor_hostname == "h1"

    ask(theirs, "DELETE", f"/leases/{made['id']}")
    await_so(lambda: pools(people).get(own) == {"h1", "h2"}, SECONDS, "the return of the host")
    assert people.is_gone(guest.id)
    assert people.look(left.id).status == ACTIVE
