"""What owners of leases and administrators learn about the hosts of a lease."""

from dataclasses import replace

import pytest

from climate.context import Climate
from climate.domain.errors import NotFound
from climate.service.hosts import inventory
from climate.service.leases import host_visibility
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.capacity_factory import servers
from tests.service.lease_actions import held, hosts_wanted, make


def knowing(climate: Climate, what: str) -> Climate:
    return replace(climate, settings=replace(climate.settings, lease_hosts=what))


def test_owners_see_public_properties_of_their_hosts(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=1)
    for number in held(lease):
        inventory.update(climate, ADMIN, str(number), {"rack": "r1", "price": "12", "authorized_projects": "project"})
    inventory.set_private(climate, ADMIN, "price", True)
    seen = host_visibility.listed(climate, MEMBER, lease.id)
    names = sorted(inventory.get(climate, ADMIN, str(number)).name for number in held(lease))
    assert [host.name for host in seen] == names
    assert {host.reservation_id for host in seen} == {lease.reservations[0].id}
    for host in seen:
        assert host.properties["rack"] == "r1"
        assert {"vcpus", "memory_mb", "local_gb", "availability_zone"} <= host.properties.keys()
        assert not {"price", "authorized_projects", "cpu_info", "service_name", "id"} & host.properties.keys()
    assert all(host.properties["price"] == "12" for host in host_visibility.listed(climate, ADMIN, lease.id))


@pytest.mark.parametrize(("what", "count"), [("names", 1), ("nothing", 0)])
def test_a_setting_limits_what_owners_see(climate: Climate, clock: Clock, what: str, count: int) -> None:
    lease = make(climate, clock, hosts_wanted(1), start=1)
    strict = knowing(climate, what)
    seen = host_visibility.listed(strict, MEMBER, lease.id)
    assert [dict(host.properties) for host in seen] == [{}] * count
    assert host_visibility.listed(strict, ADMIN, lease.id)[0].properties["vcpus"]


def test_others_do_not_see_the_lease_and_shared_hosts_have_no_owner(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1), start=1)
    with pytest.raises(NotFound):
        host_visibility.listed(climate, STRANGER, lease.id)
    shared = make(climate, clock, servers(1), start=1)
    assert host_visibility.listed(climate, MEMBER, shared.id) == []
