"""Requests of Blazar in the form of climate."""

import json
from dataclasses import replace
from uuid import UUID

import pytest

from climate.domain.errors import InvalidInput
from climate.domain.hosts.shared_capacity import Size
from climate.service.blazar_import.records import WantedAddresses, WantedHosts
from climate.service.blazar_import.reservation_conversion import convert
from plugins.flavor_instance import FlavorInstance
from plugins.physical_host import HostSpec
from plugins.virtual_floatingip import FloatingIpSpec
from tests.service.blazar_import.blazar_factory import ONE_HOST, reservation, servers
from tests.service.blazar_import.recordings import number

FLAVOR = {
    "id": "f1",
    "name": "gpu",
    "vcpus": 4,
    "ram": 8192,
    "disk": 40,
    "OS-FLV-EXT-DATA:ephemeral": 10,
    "extra_specs": {"resources:CUSTOM_GPU": "1", "resources:VCPU": "2"},
}


@pytest.mark.parametrize(("counts", "least", "most"), [("1-3", 1, 3), ("2", 2, 2), (" 4 - 5 ", 4, 5)])
def test_a_count_range_becomes_a_minimum_and_a_maximum(counts: str, least: int, most: int) -> None:
    spec = convert(reservation("a", "1", replace(ONE_HOST, count_range=counts))).spec
    assert (spec["min"], spec["max"]) == (least, most)
    assert HostSpec().load({key: spec[key] for key in spec})["max"] == most


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("snapshot", "snapshot"), ("default", "default"), ("email", "email"), ("odd", "default")],
)
def test_the_action_before_the_end_is_kept(before: str, after: str) -> None:
    assert convert(reservation("a", "1", replace(ONE_HOST, before_end=before))).spec["before_end"] == after


def test_hosts_are_whole_and_servers_have_slots() -> None:
    assert convert(reservation("a", ["1", "2"])).hosts == {"1": 0, "2": 0}
    shared = convert(reservation("a", ["1", "2", "1"], servers(3, vcpus=2)))
    assert (shared.hosts, shared.size) == ({"1": 2, "2": 1}, Size(2, 1, 1))


def test_missing_hosts_are_counted() -> None:
    lacking = replace(reservation("a", "1", replace(ONE_HOST, count_range="3-4")), missing_resources=True)
    assert convert(lacking).missing == 2
    assert convert(replace(lacking, hosts=("1", "2", "3"))).missing == 1, "Blazar says that some are missing"
    assert convert(replace(lacking, missing_resources=False)).missing == 0
    assert convert(replace(lacking, resources_changed=True)).changed
    assert convert(replace(reservation("a", "1", servers(3)), missing_resources=True)).missing == 2


def test_a_flavor_is_stored_as_climate_stores_it() -> None:
    wanted = reservation("a", ["1"], servers(1, properties=json.dumps(FLAVOR)), FlavorInstance.resource_type)
    kept = convert(wanted)
    assert kept.size == Size(2, 8192, 50), "extra specs count before the size"
    flavor = json.loads(str(kept.spec["resource_properties"]))
    assert (flavor["disk"], flavor["extra_specs"]) == (50, FLAVOR["extra_specs"])
    assert (kept.spec["flavor_id"], kept.id) == (str(number("a")), number("a"))


def test_addresses_have_their_request() -> None:
    kept = convert(replace(reservation("a", (), WantedAddresses("net", 2, ("203.0.113.1",))), addresses=("x", "y")))
    assert FloatingIpSpec().load(dict(kept.spec))["required_floatingips"] == ["203.0.113.1"]
    assert kept.addresses == ("x", "y")


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (reservation("a", "1", replace(ONE_HOST, count_range="")), "count range '', not one like 1-2"),
        (reservation("a", "1", WantedHosts("1", "", "nonsense", "")), "Malformed requirements nonsense"),
        (reservation("a", "1", servers(1, properties="[1]")), "Malformed requirements"),
        (reservation("a", "1", servers(1, properties="{}"), "flavor:instance"), "not one that Blazar stores"),
        (reservation("a", "1", None), "has no row with the request of physical:host"),
        (replace(reservation("a", "1"), id="7"), "the id '7' of its reservation is no UUID"),
        (reservation("a", (), WantedAddresses("net", 1, ("2001:db8::1",))), "is no IPv4 address"),
    ],
)
def test_requests_that_climate_does_not_have_are_refused(wanted: object, says: str) -> None:
    with pytest.raises(InvalidInput, match=says.replace("[", r"\[")):
        convert(wanted)  # type: ignore[arg-type]


def test_ids_are_kept() -> None:
    assert convert(reservation("a", "1")).id == UUID(reservation("a").id)
