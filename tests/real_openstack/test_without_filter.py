"""Leases on a real Nova that has no filter of climate: the isolation that docs/openstack.md says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real_openstack import accounts, leases
from tests.real_openstack.conftest import MARKS, People
from tests.real_openstack.leases import OWNER, STRANGER, Api, hosts, lease, pools, register
from tests.system.stack import Stack

pytestmark = MARKS


@pytest.fixture
def stack(people: People, with_usual_filters: None, tmp_path: Path) -> Iterator[Stack]:
    with leases.running(people, tmp_path / "home", {}) as made:
        yield made


@pytest.fixture
def api(stack: Stack, people: People) -> Api:
    return Api(accounts.connect(people.layout, OWNER))


def places(people: People, user: str, hint: str | None = None) -> set[str]:
    """Return the hosts of four servers of a user."""
    return {people.boot(user, hint).hypervisor_hostname for _ in range(4)}


def test_nova_keeps_other_projects_off_the_hosts_of_a_lease(people: People, stack: Stack, api: Api) -> None:
    register(stack, "h1", "h2")
    made = lease(api, hosts(1))
    pool = made["reservations"][0]["id"]
    (lent,) = pools(people)[pool]
    assert places(people, STRANGER) == {"h3"}
    assert places(people, STRANGER, pool) == {"h3"}, "the hint is ignored"
    assert places(people, OWNER, pool) <= {lent, "h3"}
    assert lent in places(people, OWNER), "the hint is not needed"


def test_placement_counts_the_slots(people: People, stack: Stack, api: Api) -> None:
    register(stack, "h1", "h2")
    size = {"vcpus": 1, "memory_mb": 256, "disk_gb": 1, "amount": 2, "affinity": None}
    flavor = lease(api, {"resource_type": "virtual:instance", **size})["reservations"][0]["id"]
    served = [people.boot(OWNER, flavor=flavor) for _ in range(2)]
    assert {each.hypervisor_hostname for each in served} <= pools(people)[flavor]
    assert people.boot(OWNER, flavor=flavor) is None, "both slots are used"
    assert places(people, STRANGER) == {"h3"}
