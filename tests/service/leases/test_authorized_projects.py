"""Hosts of the reservation pool that are for some projects only."""

import pytest

from climate.context import Climate
from climate.domain.errors import InvalidInput, InvalidRequirements, NotEnoughHosts
from climate.domain.lease import Lease
from climate.domain.policy import Caller
from climate.service.hosts import inventory
from climate.service.leases import leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.capacity_factory import hours, servers, slots
from tests.service.lease_actions import held, hosts_wanted

KEY = "authorized_projects"


@pytest.fixture
def shared(climate: Climate) -> Climate:
    """h1 to h6 are for two projects, h7 is for another one, h8 for everybody."""
    for number in range(1, 7):
        inventory.update(climate, ADMIN, str(number), {KEY: "project, third-project"})
    inventory.update(climate, ADMIN, "7", {KEY: "third-project"})
    return climate


def make(climate: Climate, clock: Clock, caller: Caller, wanted: dict[str, object], start: int = 1) -> Lease:
    begin = hours(clock.time, start)
    return leases.create(climate, caller, LeaseRequest("l", begin, hours(begin, 1), None, [wanted]))


def test_only_these_projects_get_the_host(shared: Climate, clock: Clock) -> None:
    with pytest.raises(NotEnoughHosts, match="2 wanted, 1 match"):
        make(shared, clock, STRANGER, hosts_wanted(2))
    assert held(make(shared, clock, MEMBER, hosts_wanted(7))) == {1, 2, 3, 4, 5, 6, 8}
    assert held(make(shared, clock, STRANGER, hosts_wanted(1), start=3)) == {8}


def test_it_holds_for_slots_and_for_admins_too(shared: Climate, clock: Clock) -> None:
    assert set(slots(make(shared, clock, STRANGER, servers(4, vcpus=2)))) == {8}
    with pytest.raises(NotEnoughHosts):
        make(shared, clock, STRANGER, servers(1, vcpus=1))
    assert held(make(shared, clock, ADMIN, hosts_wanted(1), start=3)) == {8}


def test_an_admin_changes_a_lease_in_the_name_of_its_project(shared: Climate, clock: Clock) -> None:
    lease = make(shared, clock, MEMBER, hosts_wanted(1, resource_properties='["<=", "$id", "6"]'))
    wish = Changes(reservations=[{"id": str(lease.reservations[0].id), "min": 6, "max": 6}])
    assert held(update.update(shared, ADMIN, lease.id, wish)) == {1, 2, 3, 4, 5, 6}


def test_its_values_are_for_admins_only(shared: Climate, clock: Clock) -> None:
    assert KEY not in {one.name for one in inventory.properties(shared, MEMBER)}
    assert KEY in {one.name for one in inventory.properties(shared, ADMIN, private=True)}
    with pytest.raises(InvalidRequirements, match="no host has a property called authorized_projects"):
        make(shared, clock, STRANGER, hosts_wanted(1, resource_properties=f'["==", "${KEY}", "third-project"]'))


@pytest.mark.parametrize("value", [",", " , "])
def test_a_list_of_nobody_is_refused(climate: Climate, value: str) -> None:
    with pytest.raises(InvalidInput, match="authorized_projects must name ids of projects"):
        inventory.update(climate, ADMIN, "1", {KEY: value})


def test_a_host_is_open_again_when_the_list_is_removed(shared: Climate, clock: Clock) -> None:
    inventory.update(shared, ADMIN, "7", {KEY: None})
    assert held(make(shared, clock, STRANGER, hosts_wanted(2))) == {7, 8}
