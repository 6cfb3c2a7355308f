"""Removing a child zone that leases need: refused, or by force, after which they end without it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from climate.domain.status import LeaseStatus
from climate.service.leases import leases
from tests.conftest import MEMBER
from tests.service.zone_tree import Family, family_of, hosts_wanted


@pytest.fixture
def family(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Family]:
    """A family whose child the test may remove."""
    with family_of(make_database, cloud_template, tmp_path_factory.mktemp("removal"), {"left": "parent"}) as found:
        yield found


@pytest.fixture(scope="module")
def whole_family(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Family]:
    """A family for refused removals, which leave it as it is."""
    with family_of(make_database, cloud_template, tmp_path_factory.mktemp("refusals"), {"left": "parent"}) as family:
        yield family


def remove(family: Family, force: str = "") -> Any:
    """The answer to the removal of the child."""
    return family.tree["parent"].ask("DELETE", f"/zones/1{force}")


def test_a_zone_is_kept_while_leases_have_hosts_there(family: Family) -> None:
    first, second = (family.make(hosts_wanted(1, zone="left")) for _ in range(2))
    answer = remove(family)
    assert answer.status_code == 409
    said = answer.get_json()["conflictingRequest"]["message"]
    assert "2 leases have hosts there" in said
    assert "force=true" in said
    leases.delete(family.parent, MEMBER, first.id)
    family.settle(60)
    assert "1 lease has hosts there" in remove(family).get_json()["conflictingRequest"]["message"]
    leases.delete(family.parent, MEMBER, second.id)
    family.settle(60)
    assert remove(family).status_code == 200
    assert family.tree["parent"].ask("GET", "/zones/1").status_code == 404


def test_a_lease_ends_without_a_zone_that_was_removed_by_force(family: Family) -> None:
    """The child is gone for good: without `force` neither the zone nor the lease could ever be deleted."""
    lease = family.make(hosts_wanted(3, across=True), start=None)
    family.settle()
    family.tree.cut("left")
    leases.delete(family.parent, MEMBER, lease.id)
    family.settle(90)
    assert family.get(lease).deleting, "the part there cannot be given back"
    assert remove(family).status_code == 409
    assert remove(family, "?force=true").status_code == 200
    family.settle(400)
    assert family.of("parent") == []
    assert family.free("parent")
    family.tree.mend("left")
    (theirs,) = family.of("left")
    assert theirs.status is LeaseStatus.ACTIVE, "the child keeps what it has until its own end"
    family.check()


@pytest.mark.parametrize("zone", ["7", "x", "0", "99999999999"])
def test_no_zone_is_no_zone_also_by_force(whole_family: Family, zone: str) -> None:
    assert whole_family.tree["parent"].ask("DELETE", f"/zones/{zone}?force=true").status_code == 404


def test_force_is_a_truth_value(whole_family: Family) -> None:
    assert remove(whole_family, "?force=perhaps").status_code == 400
    assert whole_family.tree["parent"].ask("DELETE", "/zones/1?force=true", user="demo").status_code == 403
