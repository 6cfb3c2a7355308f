"""Capabilities of hosts, and what each protocol of the cloud interface and each plugin needs of a cloud."""

import inspect

import pytest

from climate import cloud, plugin
from climate.cloud import (
    LONGEST_CAPABILITY,
    Cloud,
    FloatingIps,
    HostPools,
    LendsTogether,
    Servers,
    SharedCapacity,
    Volumes,
    provided,
)
from climate.cloud.bundled import BundledCloud
from climate.cloud.fake import FakeCloud
from climate.cloud.openstack.cloud import OpenStackCloud
from climate.service.events.cloud_steps import Steps

PROTOCOLS = (HostPools, Servers, SharedCapacity, FloatingIps, Volumes)
IMPLEMENTATIONS = (BundledCloud, FakeCloud, OpenStackCloud, Steps)


def verbs(protocol: type) -> dict[str, inspect.Signature]:
    """Return the methods that a protocol declares itself."""
    return {name: inspect.signature(each) for name, each in vars(protocol).items() if name[0] != "_"}


def test_traits_and_amounts_become_capabilities() -> None:
    assert provided(["CUSTOM_GPU"], {"CUSTOM_FPGA": 2, "VCPU": 8}) == {
        "trait:CUSTOM_GPU": "True",
        "resources:CUSTOM_FPGA": "2",
    }


def test_names_that_are_too_long_are_no_capabilities() -> None:
    longest = "C" * (LONGEST_CAPABILITY - len("trait:"))
    assert provided([longest, f"{longest}C"], {}) == {f"trait:{longest}": "True"}


def test_each_method_belongs_to_one_protocol() -> None:
    names = [name for protocol in PROTOCOLS for name in verbs(protocol)]
    assert len(names) == len(set(names))
    assert {name for name in dir(Cloud) if name[0] != "_"} == set(names)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_each_cloud_has_each_method_with_its_parameters(implementation: type, protocol: type) -> None:
    for name, declared in verbs(protocol).items():
        own = inspect.signature(getattr(implementation, name))
        assert list(own.parameters.values())[: len(declared.parameters)] == list(declared.parameters.values()), name


def test_only_clouds_that_can_wait_for_nothing_lend_together() -> None:
    able = [each for each in IMPLEMENTATIONS if issubclass(each, LendsTogether)]
    assert able == [BundledCloud]


NEEDS = {
    "physical:host": {"HostPools", "PoolsWithServers", "Servers"},
    "virtual:floatingip": {"FloatingIps"},
    "storage:pool": {"Volumes"},
    "flavor:instance": {"HostPools", "ServersAndCapacity", "SharedCapacity"},
}
"""Protocols that the hooks of each plugin take, beside `object`."""


@pytest.mark.parametrize("resource_type", NEEDS)
def test_each_plugin_takes_the_narrowest_protocol(resource_type: str) -> None:
    hooks = ("check", "on_start", "before_end", "close", "on_end")
    found = plugin.load(resource_type)[resource_type]
    taken = {inspect.signature(getattr(found, hook)).parameters["cloud"].annotation for hook in hooks} - {object}
    assert {each.__name__ for each in taken} == NEEDS[resource_type]


def test_the_package_exports_what_its_modules_declare() -> None:
    assert {protocol.__name__ for protocol in PROTOCOLS} <= set(cloud.__all__)
