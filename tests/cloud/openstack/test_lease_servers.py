"""Servers on the hosts of a Nova that are not of a lease, and the evacuation of those that are."""

from pathlib import Path
from typing import Any

import pytest

from climate.cloud import FAILED, FREEPOOL, Cloud, NotYet
from climate.cloud.openstack.lease_servers import ORIGIN
from climate.cloud.openstack.pools.aggregates import NOBODY, OWNER, TENANT
from tests.cloud.nova import Nova, nova

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code

N1, N2 = "n1.example.org", "n2.example.org"
SPOT: dict[str, Any] = {"original_name": "spot", "extra_specs": {"blazar:preemptible": "true"}}


def lent(cloud: Cloud, *hosts: str) -> None:
    for host in hosts:
        cloud.enrol(host, 1)
    cloud.lend("r1", "demo", hosts, 1)


def test_a_reservation_pool_of_somebody_else_is_closed(there: Nova, cloud: Cloud) -> None:
    there.put(FREEPOOL, ("n1",), rack="7")
    cloud.enrol(N1, 1)
    assert there.of(FREEPOOL)["metadata"] == {TENANT: NOBODY, "rack": "7"}
    there.of(FREEPOOL)["metadata"].pop(TENANT)
    cloud.lend("r1", "demo", [N1], 2)
    assert there.of(FREEPOOL)["metadata"][TENANT] == NOBODY


def test_blazar_filter_protects_a_pool_that_an_administrator_opened(tmp_path: Path) -> None:
    with nova(tmp_path, blazar_filter=True) as (there, cloud):
        there.put(FREEPOOL, ("n1",))
        cloud.enrol(N1, 1)
        cloud.lend("r1", "demo", [N1], 2)
        assert there.of(FREEPOOL)["metadata"] == {}


def test_a_host_with_a_server_of_somebody_else_is_not_lent(there: Nova, cloud: Cloud) -> None:
    for host in (N1, N2):
        cloud.enrol(host, 1)
    there.run("theirs", N1, tenant_id="other")
    with pytest.raises(NotYet, match=f"1 servers that are not of the lease are still on {N1}"):
        cloud.lend("r1", "demo", [N1, N2], 1)
    cloud.lend("r2", "demo", [N2], 1)
    with pytest.raises(NotYet, match="not of the lease"):
        cloud.place(N1, "r2", 2)
    assert cloud.pools() == {FREEPOOL: {N1}, "r2": {N2}}
    there.servers.clear()
    cloud.place(N1, "r2", 2)
    assert cloud.pools() == {FREEPOOL: frozenset(), "r2": {N1, N2}}


@pytest.mark.parametrize("is_closed", [False, True])
def test_servers_of_others_are_none_of_a_lease_and_keep_their_host(there: Nova, cloud: Cloud, is_closed: bool) -> None:
    lent(cloud, N1)
    there.run("mine", N1)
    there.run("theirs", N1, tenant_id="other")
    if is_closed:
        cloud.close("r1", 2)
    assert [each.id for each in cloud.servers_in("r1")] == ["mine"]
    cloud.delete_server("mine", 2)
    with pytest.raises(NotYet, match="1 servers are still on the hosts"):
        cloud.take_back("r1", [N1], 2)
    assert set(there.servers) == {"theirs"}


@pytest.mark.parametrize("owner", ["demo", NOBODY])
def test_the_project_of_a_pool_of_blazar_is_remembered(there: Nova, cloud: Cloud, owner: str) -> None:
    """A pool that was closed before its project was recorded has no strangers."""
    there.put("r1", ("n1",), **{OWNER: owner})
    there.run("mine", N1)
    there.run("theirs", N1, tenant_id="other")
    cloud.close("r1", 2)
    found = {each.id for each in cloud.servers_in("r1")}
    assert found == ({"mine"} if owner == "demo" else {"mine", "theirs"})


def test_servers_of_admitted_projects_are_of_the_lease(tmp_path: Path) -> None:
    with nova(tmp_path, blazar_filter=True) as (there, cloud):
        lent(cloud, N1)
        there.of("r1")["metadata"]["friend"] = "blazar:project"
        there.run("theirs", N1, tenant_id="friend")
        there.run("strange", N1, tenant_id="other")
        for _ in range(2):
            assert [each.id for each in cloud.servers_in("r1")] == ["theirs"]
            cloud.close("r1", 2)
        assert "friend" not in there.of("r1")["metadata"]


def test_preemptible_servers_leave_a_host_that_a_healed_lease_gets(tmp_path: Path) -> None:
    with nova(tmp_path, blazar_filter=True) as (there, cloud):
        lent(cloud, N1)
        cloud.enrol(N2, 1)
        there.run("spot", N2, flavor=SPOT, tenant_id="other")
        with pytest.raises(NotYet, match="preemptible"):
            cloud.place(N2, "r1", 2)
        assert "spot" not in there.servers
        cloud.place(N2, "r1", 2)
        assert cloud.pools() == {FREEPOOL: frozenset(), "r1": {N1, N2}}


def fail(there: Nova, cloud: Cloud, host: str) -> None:
    there.down = {host}
    cloud.place({"n1": N1, "n2": N2}[host], FAILED, 3)


def evacuated(there: Nova) -> list[str]:
    return [line for line in there.log if line.startswith("evacuate")]


def test_servers_of_a_failed_host_are_evacuated_within_their_lease(there: Nova, cloud: Cloud) -> None:
    lent(cloud, N1)
    there.run("mine", N1)
    fail(there, cloud, "n1")
    assert there.of(FAILED)["metadata"][f"{ORIGIN}{N1}"] == "r1"
    with pytest.raises(NotYet, match="no host of the pool r1 is up"):
        cloud.evacuate_server("mine", N1, 4)
    cloud.enrol(N2, 4)
    cloud.place(N2, "r1", 4)
    cloud.evacuate_server("mine", N1, 5)
    assert evacuated(there) == ["evacuate mine n2"]


def test_servers_of_a_host_without_an_open_lease_are_evacuated_to_any(there: Nova, cloud: Cloud) -> None:
    lent(cloud, N1)
    there.run("mine", N1)
    fail(there, cloud, "n1")
    cloud.close("r1", 4)
    cloud.evacuate_server("mine", N1, 5)
    assert evacuated(there) == ["evacuate mine"]


def test_a_host_that_returns_forgets_the_lease_that_it_left(there: Nova, cloud: Cloud) -> None:
    lent(cloud, N1)
    fail(there, cloud, "n1")
    there.down = set()
    cloud.place(N1, "r1", 4)
    assert f"{ORIGIN}{N1}" not in there.of(FAILED)["metadata"]
