"""Hosts on the books, while leases count on them."""

import pytest

from climate.cloud import FREEPOOL, Refused
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict
from climate.domain.status import LeaseStatus
from climate.service import hosts
from tests.conftest import ADMIN, Clock, cloud_host
from tests.service.acts import get, held, hosts_wanted, make, run_due


@pytest.mark.parametrize("where", ["hypervisor_properties", "resource_properties"])
def test_a_capability_that_a_lease_relies_on_stays(climate: Climate, clock: Clock, where: str) -> None:
    lease = make(climate, clock, hosts_wanted(1, **{where: '["and", [">", "$vcpus", "4"], [">", "$gpu_count", "1"]]'}))
    host = str(min(held(lease)))
    for value in ("1", None):
        with pytest.raises(Conflict, match="gpu_count"):
            hosts.update(climate, ADMIN, host, {"gpu_count": value})
    assert hosts.update(climate, ADMIN, host, {"gpu_count": "2", "rack": "7"}).extra == {"gpu_count": "2", "rack": "7"}


def test_a_host_that_the_cloud_refuses_stays_on_the_books_of_whom_it_was_promised_to(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("h9", vcpus=64)])
    leases = []

    def book(verb: str) -> None:
        if verb == "enrol" and not leases:
            leases.append(make(climate, clock, hosts_wanted(1, hypervisor_properties='["==", "$vcpus", "64"]')))

    cloud.watch, cloud.failures = book, {"enrol": Refused("servers were quicker")}
    with pytest.raises(Conflict, match="quicker"):
        hosts.register(climate, ADMIN, "h9", {})
    assert [host.id for host in hosts.listed(climate, ADMIN) if host.name == "h9"] == list(held(leases[0]))
    cloud.failures = {}
    hosts.mend_pools(climate)
    assert "h9" in cloud.pools()[FREEPOOL]


def test_a_host_that_the_cloud_refuses_is_not_on_the_books(climate: Climate, cloud: FakeCloud) -> None:
    cloud.set_hosts([*cloud.hosts.values(), cloud_host("h9")])
    cloud.failures = {"enrol": Refused("servers were quicker")}
    with pytest.raises(Conflict, match="quicker"):
        hosts.register(climate, ADMIN, "h9", {})
    assert "h9" not in {host.name for host in hosts.listed(climate, ADMIN)}


def test_a_lease_waits_for_a_host_that_the_cloud_was_not_told_of(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    """Whoever registered it died between the books and the cloud."""
    lease = make(climate, clock, hosts_wanted(8), start=0)
    cloud.withdraw("h1")
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.STARTING
    hosts.mend_pools(climate)
    clock.forward(seconds=10)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
