"""Preemptible servers on a real Nova with blazar-nova's BlazarFilter: they leave before a lease gets their host."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from climate.cloud import ACTIVE, FREEPOOL
from tests.real_openstack import accounts, leases
from tests.real_openstack.conftest import MARKS, People
from tests.real_openstack.layout import HOSTS
from tests.real_openstack.leases import OWNER, STRANGER, Api
from tests.system.stack import Stack

pytestmark = MARKS


@pytest.fixture
def stack(people: People, with_blazar_filter: None, tmp_path: Path) -> Iterator[Stack]:
    with leases.running(people, tmp_path / "home", {"CLIMATE_OPENSTACK_BLAZAR_FILTER": "true"}) as made:
        yield made


def _spot_flavor(people: People) -> str:
    """Return a flavor of preemptible servers; the reservation pool is open to them, as docs/openstack.md says."""
    compute = people.admin.compute
    (pool,) = (each for each in compute.aggregates() if each.name == FREEPOOL)
    compute.set_aggregate_metadata(pool, filter_tenant_id=None)
    flavor = compute.create_flavor(name="spot", vcpus=1, ram=128, disk=1)
    compute.create_flavor_extra_specs(flavor, {"blazar:preemptible": "true"})
    return str(flavor.id)


def test_preemptible_servers_leave_before_a_lease_gets_their_host(people: People, stack: Stack) -> None:
    leases.register(stack, *HOSTS)
    spot = partial(people.boot, STRANGER, flavor=_spot_flavor(people))
    assert people.boot(STRANGER) is None, "an ordinary server has no place among hosts for leases"
    servers = {each.id: each.hypervisor_hostname for each in (spot() for _ in range(6))}

    api = Api(accounts.connect(people.layout, OWNER))
    made = leases.lease(api, leases.hosts(2))
    pool = made["reservations"][0]["id"]
    lent = leases.pools(people)[pool]
    assert {each.id for each in people.servers()} == {one for one, host in servers.items() if host not in lent}

    mine = people.boot(OWNER, pool)
    assert (mine.status, mine.hypervisor_hostname in lent) == (ACTIVE, True)
    assert people.boot(STRANGER, pool) is None
    (free,) = set(HOSTS) - lent
    assert {spot().hypervisor_hostname for _ in range(3)} == {free}
    assert people.look(mine.id).status == ACTIVE

    leases.end(api, made)
    assert people.is_gone(mine.id)
    assert leases.pools(people)[FREEPOOL] == set(HOSTS)
