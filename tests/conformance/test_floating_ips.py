"""FloatingIps in every cloud: addresses of reservations."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Protocol

import pytest
from sqlalchemy import text

from climate.cloud import Fenced, FloatingIps, NotYet, Refused
from climate.cloud.bundled import BundledCloud
from climate.cloud.fake import FakeCloud
from climate.cloud.fake_state import FakeAddress
from climate.compute.network import floating_ips
from tests.cloud.neutron import OUTSIDE as NETWORK
from tests.cloud.nova import Nova, nova
from tests.compute.cloud_factory import Place, node, place
from tests.conformance.conftest import SDK_WARNS
from tests.service.floating_ip_factory import OUTSIDE

POOL, OTHER = "6f0f3a1e-7d1c-4b4c-9d0e-0d5b7f6f2f11", "6f0f3a1e-7d1c-4b4c-9d0e-0d5b7f6f2f22"
ONE, TWO = "203.0.113.7", "203.0.113.8"
OWN = "203.0.113.120"


class Outside(Protocol):
    """A cloud with a network outside: 203.0.113.0/24, of which it hands out 100 to 199 itself."""

    @property
    def cloud(self) -> FloatingIps: ...

    @property
    def network(self) -> str:
        """Its id."""

    def addresses(self) -> dict[str, tuple[str, frozenset[str]]]:
        """The addresses that projects have: whose each is, and its tags."""

    def own(self, address: str) -> None:
        """Somebody has an address that nothing of ours is about."""

    def use(self, address: str) -> None:
        """Its project lets an address stand for a server."""


class FakeOutside:
    network = OUTSIDE.id

    def __init__(self) -> None:
        self.cloud = FakeCloud(external={OUTSIDE.id: OUTSIDE})

    def addresses(self) -> dict[str, tuple[str, frozenset[str]]]:
        found = self.cloud.addresses.items()
        return {at: (one.project_id, _tags(one.pool) if one.pool else frozenset()) for at, one in found}

    def own(self, address: str) -> None:
        self.cloud.addresses[address] = FakeAddress("somebody", self.network, None)

    def use(self, address: str) -> None:
        """It has no servers that addresses could be of."""


class BundledOutside:
    def __init__(self, here: Place) -> None:
        self.here, self.cloud = here, BundledCloud(here.compute)
        with here.compute.engine.begin() as conn:
            gateway = IPv4Address("203.0.113.1")
            self.network = floating_ips.create_pool(conn, "public", IPv4Network("203.0.113.0/24"), gateway=gateway)
            floating_ips.add(conn, self.network, IPv4Address("203.0.113.100"), IPv4Address("203.0.113.199"))

    def addresses(self) -> dict[str, tuple[str, frozenset[str]]]:
        asked = "SELECT host(address), project_id, tags FROM compute_floating_addresses WHERE project_id IS NOT NULL"
        with self.here.compute.engine.connect() as conn:
            return {at: (project, frozenset(tags)) for at, project, tags in conn.execute(text(asked))}

    def own(self, address: str) -> None:
        with self.here.compute.engine.begin() as conn:
            only = IPv4Address(address)
            floating_ips.add(conn, self.network, only, only)
            made = "UPDATE compute_floating_addresses SET project_id = 'somebody' WHERE address = CAST(:at AS inet)"
            assert conn.execute(text(made), {"at": address}).rowcount == 1

    def use(self, address: str) -> None:
        server = self.here.boot(project_id="demo")[0]
        stands = text("""
            UPDATE compute_floating_addresses f SET fixed_network_id = a.network_id, fixed_address = a.address
            FROM compute_addresses a WHERE f.address = CAST(:at AS inet) AND a.server_id = CAST(:server AS uuid)""")
        with self.here.compute.engine.begin() as conn:
            conn.execute(text("UPDATE compute_networks SET host = 'n1'"))
            assert conn.execute(stands, {"at": address, "server": server.id}).rowcount == 1


class OpenStackOutside:
    network = NETWORK

    def __init__(self, there: Nova, cloud: FloatingIps) -> None:
        self.there, self.cloud = there.network, cloud

    def addresses(self) -> dict[str, tuple[str, frozenset[str]]]:
        found = self.there.floating.values()
        return {one["floating_ip_address"]: (one["project_id"], frozenset(one["tags"])) for one in found}

    def own(self, address: str) -> None:
        self.there.put(address)

    def use(self, address: str) -> None:
        self.there.at(address)["port_id"] = "a port"


def _tags(pool: str) -> frozenset[str]:
    return frozenset({"blazar", f"reservation:{pool}"})


@pytest.fixture
def fake_outside() -> Outside:
    return FakeOutside()


@pytest.fixture
def bundled_outside(scratch: str, tmp_path: Path) -> Iterator[Outside]:
    with place(scratch, tmp_path, [node("h1")]) as here:
        yield BundledOutside(here)


@pytest.fixture
def openstack_outside(tmp_path: Path) -> Iterator[Outside]:
    with nova(tmp_path) as (there, cloud):
        yield OpenStackOutside(there, cloud)


@pytest.fixture(params=["fake_outside", "bundled_outside", pytest.param("openstack_outside", marks=SDK_WARNS)])
def outside(request: pytest.FixtureRequest) -> Outside:
    found: Outside = request.getfixturevalue(request.param)
    return found


def lend(outside: Outside, address: str, token: int, pool: str = POOL) -> None:
    outside.cloud.lend_address(pool, "demo", outside.network, address, token)


def test_what_is_outside(outside: Outside) -> None:
    found = outside.cloud.find_external("public")
    assert found is not None
    assert found == outside.cloud.find_external(outside.network)
    assert (found.id, found.name) == (outside.network, "public")
    (subnet,) = found.subnets
    assert (subnet.cidr, subnet.gateway) == ("203.0.113.0/24", "203.0.113.1")
    assert subnet.handed_out == (("203.0.113.100", "203.0.113.199"),)
    lend(outside, ONE, 1)
    assert outside.cloud.find_external("public") == found, "what is lent is not handed out"
    for other in ("private", "nowhere", "00000000-0000-4000-8000-000000000000"):
        assert outside.cloud.find_external(other) is None


def test_allocate_and_release(outside: Outside) -> None:
    lend(outside, ONE, 1)
    lend(outside, TWO, 1)
    lend(outside, ONE, 1)
    assert outside.addresses() == {ONE: ("demo", _tags(POOL)), TWO: ("demo", _tags(POOL))}
    for _ in range(2):
        outside.cloud.take_back_addresses(POOL, [ONE, TWO], 2)
        assert outside.addresses() == {}
    lend(outside, ONE, 3)
    assert outside.addresses() == {ONE: ("demo", _tags(POOL))}, "a later claim may begin anew"


def test_more_is_allocated_under_a_later_claim(outside: Outside) -> None:
    lend(outside, ONE, 1)
    lend(outside, ONE, 5)
    lend(outside, TWO, 5)
    assert set(outside.addresses()) == {ONE, TWO}
    with pytest.raises(Fenced):
        outside.cloud.take_back_addresses(POOL, [ONE], 4)
    with pytest.raises(Fenced):
        lend(outside, ONE, 4)
    assert set(outside.addresses()) == {ONE, TWO}


def test_nothing_is_allocated_late(outside: Outside) -> None:
    outside.cloud.take_back_addresses(POOL, [ONE], 7)
    with pytest.raises(Fenced):
        lend(outside, ONE, 6)
    assert outside.addresses() == {}
    lend(outside, ONE, 6, OTHER)
    outside.cloud.take_back_addresses(POOL, [], 8)
    assert outside.addresses() == {ONE: ("demo", _tags(OTHER))}, "another pool is none of its business"


def test_an_address_is_allocated_to_one_pool_at_a_time(outside: Outside) -> None:
    lend(outside, ONE, 1)
    with pytest.raises(NotYet, match=f"reservation {POOL}"):
        lend(outside, ONE, 2, OTHER)
    outside.cloud.take_back_addresses(OTHER, [ONE], 3)
    assert outside.addresses() == {ONE: ("demo", _tags(POOL))}
    outside.cloud.take_back_addresses(POOL, [ONE], 4)
    lend(outside, ONE, 5, OTHER)
    assert outside.addresses() == {ONE: ("demo", _tags(OTHER))}


def test_what_somebody_has_is_left_alone(outside: Outside) -> None:
    outside.own(OWN)
    with pytest.raises(Refused):
        lend(outside, OWN, 1)
    outside.cloud.take_back_addresses(POOL, [], 2)
    assert outside.addresses() == {OWN: ("somebody", frozenset())}


def test_there_is_no_such_network(outside: Outside) -> None:
    with pytest.raises(Refused):
        outside.cloud.lend_address(POOL, "demo", "00000000-0000-4000-8000-000000000000", ONE, 1)
    assert outside.addresses() == {}


def test_an_address_that_is_used_is_taken_back(outside: Outside) -> None:
    lend(outside, ONE, 1)
    outside.use(ONE)
    outside.cloud.take_back_addresses(POOL, [ONE], 2)
    assert outside.addresses() == {}


def test_the_host_of_an_address_is_called_to_take_it_away(bundled_outside: BundledOutside) -> None:
    lend(bundled_outside, ONE, 1)
    bundled_outside.use(ONE)
    bundled_outside.cloud.take_back_addresses(POOL, [ONE], 2)
    with bundled_outside.here.compute.engine.connect() as conn:
        assert list(conn.scalars(text("SELECT host FROM compute_network_calls"))) == ["n1"]


def test_an_address_outside_of_the_network_is_refused(bundled_outside: BundledOutside) -> None:
    with pytest.raises(Refused, match=r"not one of 203\.0\.113\.0/24"):
        lend(bundled_outside, "198.51.100.1", 1)


@SDK_WARNS
def test_marks_that_were_taken_away(openstack_outside: OpenStackOutside) -> None:
    lend(openstack_outside, ONE, 1)
    lend(openstack_outside, TWO, 1)
    openstack_outside.there.at(ONE)["tags"] = []
    openstack_outside.there.at(TWO).update(tags=[], description="mine")
    openstack_outside.own(OWN)
    openstack_outside.cloud.take_back_addresses(POOL, [], 2)
    assert set(openstack_outside.addresses()) == {TWO, OWN}, "its description is enough"
    openstack_outside.cloud.take_back_addresses(POOL, [ONE, TWO], 2)
    assert set(openstack_outside.addresses()) == {OWN}, "what was handed over is known by its address"


@SDK_WARNS
def test_a_start_that_breaks_off_before_the_tags(openstack_outside: OpenStackOutside) -> None:
    there = openstack_outside.there

    def break_off(verb: str) -> None:
        if verb == "tag":
            raise ConnectionError

    there.before = break_off
    with pytest.raises(Exception, match="500"):
        lend(openstack_outside, ONE, 1)
    there.before = lambda verb: None
    lend(openstack_outside, ONE, 2)
    assert openstack_outside.addresses() == {ONE: ("demo", _tags(POOL))}
    assert there.log == [f"make {ONE}", f"tag {ONE}"]


@SDK_WARNS
def test_tags_of_its_owner_stay(openstack_outside: OpenStackOutside) -> None:
    lend(openstack_outside, ONE, 1)
    openstack_outside.there.at(ONE)["tags"] = ["web"]
    lend(openstack_outside, ONE, 2)
    assert openstack_outside.addresses() == {ONE: ("demo", _tags(POOL) | {"web"})}


@SDK_WARNS
def test_somebody_takes_the_address_first(openstack_outside: OpenStackOutside) -> None:
    there = openstack_outside.there
    there.before = lambda verb: there.put(ONE) and None if verb == "make" else None
    with pytest.raises(NotYet):
        lend(openstack_outside, ONE, 1)
    assert openstack_outside.addresses() == {ONE: ("somebody", frozenset())}
