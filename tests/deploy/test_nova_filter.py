"""The scheduler filter of Nova, on requests and hosts that a real Nova gave to a filter."""

import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.deploy import host_states
from tests.deploy.host_states import ERRORS, Request, host_state, recorded

MODULE = Path(__file__).parents[2] / "deploy" / "nova-filter" / "climate_nova_filter.py"
SCENES = {
    "owner with hint": {"h1"},
    "owner without hint": {"h3"},
    "stranger with hint": set[str](),
    "hint of no reservation": set[str](),
    "closed pool": set[str](),
    "first in two slots": {"h1"},
    "second in two slots, with another hint": {"h1"},
    "third in two slots": set[str](),
    "ordinary flavor beside slots": {"h3"},
    "slots of a host in maintenance": set[str](),
}
"""Hosts that the filter admits, by scene."""

Passes = Callable[[dict[str, Any]], bool]


@pytest.fixture(scope="module")
def passes() -> Passes:
    """Return whether a recorded host passes. Nova itself is not installed here."""
    names = ("nova", "nova.exception", "nova.scheduler", "nova.scheduler.filters")
    assert not set(names) & sys.modules.keys()
    nova = {name: ModuleType(name) for name in names}
    for name, module in nova.items():
        if "." in name:
            above, _, own = name.rpartition(".")
            setattr(nova[above], own, module)
    vars(nova["nova.exception"]).update(ERRORS)
    vars(nova["nova.scheduler.filters"])["BaseHostFilter"] = object
    sys.modules.update(nova)
    try:
        spec = spec_from_file_location("climate_nova_filter", MODULE)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        for name in names:
            del sys.modules[name]
    found = module.ReservationFilter()
    return lambda line: bool(found.host_passes(host_state(line), Request(line)))


@pytest.mark.parametrize("scene", SCENES)
def test_hosts_of_each_scene(passes: Passes, scene: str) -> None:
    lines = recorded()[scene]
    assert {line["host"] for line in lines} == {"h1", "h2", "h3"}
    assert {line["host"] for line in lines if passes(line)} == SCENES[scene]


def test_each_recorded_scene_is_tested() -> None:
    assert recorded().keys() == SCENES.keys()


def of_h1(scene: str, **changes: Any) -> dict[str, Any]:
    (line,) = (line for line in recorded()[scene] if line["host"] == "h1")
    return {**line, **changes}


def test_a_server_does_not_use_a_slot_of_its_own_request(passes: Passes) -> None:
    """It is evacuated or resized within its slot."""
    line = of_h1("third in two slots")
    assert passes({**line, "instance_uuid": next(iter(line["instances"]))})


def test_servers_with_another_flavor_use_no_slot(passes: Passes) -> None:
    line = of_h1("third in two slots")
    assert passes({**line, "instances": {**line["instances"], next(iter(line["instances"])): "tiny"}})


@pytest.mark.parametrize(("flavor", "passing"), [("InstanceNotFound", True), ("OrphanedObjectError", False)])
def test_servers_that_nova_cannot_read(passes: Passes, flavor: str, passing: bool) -> None:
    """A deleted server uses no slot. One that is not stored yet belongs to the same request, and uses one."""
    line = of_h1("third in two slots")
    first, *others = line["instances"]
    assert passes({**line, "instances": {first: flavor, **dict.fromkeys(others, line["flavorid"])}}) is passing


def test_free_slots_of_a_host_out_of_use_admit_nobody(passes: Passes) -> None:
    line = of_h1("slots of a host in maintenance", instances={})
    assert not passes(line)
    assert passes({**line, "aggregates": [each for each in line["aggregates"] if each["name"] != "maintenance"]})


def test_free_slots_that_are_closed_admit_nobody(passes: Passes) -> None:
    """At the end of a lease climate closes them, and keeps the project in their metadata."""
    line = of_h1("first in two slots")
    assert passes(line)
    for each in line["aggregates"]:
        each["metadata"]["climate:closed"] = "true"
    assert not passes(line)


def test_a_flavor_whose_extra_specs_are_not_loaded_is_an_ordinary_one(passes: Passes) -> None:
    assert not passes(of_h1("first in two slots", extra_specs=None))


def test_a_hint_does_not_replace_the_reservation_of_the_flavor(passes: Passes) -> None:
    line = of_h1("owner with hint")
    assert passes(line)
    assert not passes({**line, "extra_specs": {"aggregate_instance_extra_specs:reservation": host_states.SLOTS}})


@pytest.mark.parametrize(("scene", "passing"), [("stranger with hint", True), ("closed pool", False)])
def test_further_projects_are_admitted_until_the_pool_is_closed(passes: Passes, scene: str, passing: bool) -> None:
    line = of_h1(scene)
    assert not passes(line)
    for each in line["aggregates"]:
        each["metadata"][f"climate:shared:{line['project_id']}"] = "true"
    assert passes(line) is passing
