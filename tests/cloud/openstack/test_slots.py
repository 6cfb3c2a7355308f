"""Slots of shared capacity in Placement: their number, and what others change at the same moment."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from climate.cloud import FREEPOOL, Capacity, Cloud, NotYet, openstack
from climate.cloud.openstack.slots import class_of
from tests.cloud.nova import Nova

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code

N1, N2 = "n1.example.org", "n2.example.org"
POOL = "0d1e3c52-56c1-4d0e-9a3c-6c6b1f0c0001"
OTHER = "0d1e3c52-56c1-4d0e-9a3c-6c6b1f0c0002"
UNIT = "CUSTOM_RESERVATION_0D1E3C52_56C1_4D0E_9A3C_6C6B1F0C0001"


def grant(there: Nova, cloud: Cloud, counts: dict[str, int], pool: str = POOL) -> None:
    if not any(each["name"] == FREEPOOL for each in there.aggregates.values()):
        there.put(FREEPOOL, ("n1", "n2"))
    there.flavors.setdefault(pool, {"id": pool, "vcpus": 1, "ram": 512, "disk": 1, "specs": {}})
    there.access.setdefault(pool, set())
    cloud.grant(Capacity(pool, "demo", 1, 512, 1, counts), 5)


def totals(there: Nova, host: str) -> dict[str, tuple[int, int]]:
    """Return the slots of a host by resource class: all, and those that are closed."""
    found = there.placement.named(f"blazar_{host}")
    return {name: (each["total"], each["reserved"]) for name, each in found.items()}


def use(there: Nova, host: str, count: int) -> None:
    (provider,) = (each for each, name in there.placement.names.items() if name == f"blazar_{host}")
    there.placement.usages[provider][UNIT] = count


def once(action: Callable[[], object]) -> Callable[[str], None]:
    """Return a hook that acts at the first request only."""
    left = [action]
    return lambda path: left.pop()() if left and "/inventories" in path else None


def test_each_server_takes_a_unit_of_the_class_of_its_reservation(there: Nova, cloud: Cloud) -> None:
    for _ in range(2):
        grant(there, cloud, {N1: 2, N2: 1})
    assert (totals(there, N1), totals(there, N2)) == ({UNIT: (2, 0)}, {UNIT: (1, 0)})
    assert there.flavors[POOL]["specs"][f"resources:{UNIT}"] == "1"
    assert there.placement.classes == {UNIT}


def test_the_number_changes_and_a_host_that_leaves_has_none(there: Nova, cloud: Cloud) -> None:
    grant(there, cloud, {N1: 2, N2: 1})
    grant(there, cloud, {N1: 3})
    assert (totals(there, N1), totals(there, N2)) == ({UNIT: (3, 0)}, {})


def test_slots_that_are_used_are_closed_and_removed_later(there: Nova, cloud: Cloud) -> None:
    grant(there, cloud, {N1: 2, N2: 1})
    use(there, N2, 1)
    grant(there, cloud, {N1: 3})
    assert totals(there, N2) == {UNIT: (1, 1)}, "Placement removes no inventory that is in use"
    cloud.close(POOL, 6)
    with pytest.raises(NotYet, match="still use slots"):
        cloud.revoke(POOL, [N1], 6)
    use(there, N2, 0)
    cloud.revoke(POOL, [N1], 6)
    assert (totals(there, N1), totals(there, N2), there.placement.classes) == ({}, {}, set())


def test_reservations_share_the_provider_of_a_host(there: Nova, cloud: Cloud) -> None:
    grant(there, cloud, {N1: 2})
    grant(there, cloud, {N1: 1}, OTHER)
    assert totals(there, N1) == {UNIT: (2, 0), class_of(OTHER): (1, 0)}
    cloud.revoke(POOL, [N1], 6)
    assert totals(there, N1) == {class_of(OTHER): (1, 0)}


def test_an_inventory_that_another_worker_stored_first_stays(there: Nova, cloud: Cloud) -> None:
    grant(there, cloud, {N1: 2})

    def interfere() -> None:
        there.placement.classes.add(class_of(OTHER))
        there.placement.named(f"blazar_{N1}")[class_of(OTHER)] = {"total": 1, "reserved": 0}
        for provider in there.placement.generations:
            there.placement.generations[provider] += 1

    there.placement.before = once(interfere)
    grant(there, cloud, {N1: 4})
    assert totals(there, N1) == {UNIT: (4, 0), class_of(OTHER): (1, 0)}


def test_a_provider_that_another_worker_created_first_is_used(there: Nova, cloud: Cloud) -> None:
    def create_first(path: str) -> None:
        if path.endswith("/resource_providers") and f"blazar_{N1}" not in there.placement.names.values():
            there.placement.put(f"blazar_{N1}", provider="first")

    there.placement.before = create_first
    grant(there, cloud, {N1: 2})
    assert set(there.placement.inventories["first"]) == {UNIT}


def test_it_waits_for_a_provider_of_the_host(there: Nova, cloud: Cloud) -> None:
    del there.placement.names[N1]
    with pytest.raises(NotYet, match=f"no resource provider {N1}"):
        grant(there, cloud, {N1: 2})


def test_it_gives_up_when_others_change_the_slots_all_the_time(there: Nova, cloud: Cloud) -> None:
    grant(there, cloud, {N1: 2})

    def interfere(path: str) -> None:
        for provider in there.placement.generations:
            there.placement.generations[provider] += 1

    there.placement.before = interfere
    with pytest.raises(NotYet, match="at this moment"):
        grant(there, cloud, {N1: 4})


def test_the_class_of_a_host_that_left_the_cloud_remains(there: Nova, cloud: Cloud) -> None:
    grant(there, cloud, {N1: 2})
    there.placement.put("lost", {UNIT: {"total": 1, "reserved": 0}})
    cloud.revoke(POOL, [N1], 6)
    assert there.placement.classes == {UNIT}
    assert POOL not in {each["name"] for each in there.aggregates.values()}


def test_a_cloud_without_placement_counts_by_itself(there: Nova, cloud: Cloud, tmp_path: Path) -> None:
    path = tmp_path / "clouds.yaml"
    known = yaml.safe_load(path.read_text(encoding="utf-8"))
    del known["clouds"]["nova"]["placement_endpoint_override"]
    path.write_text(yaml.safe_dump(known), encoding="utf-8")
    bare = openstack.of("nova", str(path))
    grant(there, bare, {N1: 2})
    assert not [key for key in there.flavors[POOL]["specs"] if key.startswith("resources:")]
    bare.revoke(POOL, [N1], 6)
    assert there.placement.classes == set()
