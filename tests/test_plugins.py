"""Resource plugins are those that an operator chooses, and what is missing is named."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from climate import bootstrap, plugin
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.status import UNDONE, LeaseStatus
from climate.plugin import Plugins
from climate.service.leases import update
from climate.service.leases.update import Changes
from climate.settings import SettingError, Settings
from tests.conftest import MEMBER, Clock
from tests.service import lease_actions
from tests.service.lease_actions import START, get, make, run_due, settle

BUNDLED = {"flavor:instance", "physical:host", "storage:pool", "virtual:floatingip", "virtual:instance"}


def test_all_that_are_installed_are_loaded_unless_some_are_chosen() -> None:
    assert set(plugin.load()) >= BUNDLED
    assert list(plugin.load(" physical:host, virtual:instance,")) == ["physical:host", "virtual:instance"]


def test_a_type_that_is_not_installed_stops_the_start_with_its_name() -> None:
    settings = Settings.from_env({"CLIMATE_RESOURCE_PLUGINS": "physical:host,storage:tape"})
    with pytest.raises(SettingError, match="no plugin is installed for storage:tape; installed are: flavor:instance"):
        bootstrap.check(settings)


@pytest.mark.parametrize("value", ["climate.nowhere:Plugin", "climate.plugin:Nothing"])
def test_a_plugin_that_cannot_be_imported_is_named(value: str) -> None:
    with pytest.raises(SettingError, match=rf"test:broken cannot be loaded from {value}"):
        plugin.loaded(EntryPoint("test:broken", value, plugin.GROUP))


def test_a_plugin_under_the_name_of_another_type_is_named() -> None:
    with pytest.raises(SettingError, match=r"has the resource type physical:host.*: name it physical:host"):
        plugin.loaded(EntryPoint("test:tape", "plugins.physical_host:PhysicalHost", plugin.GROUP))


def without(climate: Climate, missing: str) -> Climate:
    """The engine after an operator has left a plugin out."""
    left: Mapping[str, plugin.ResourcePlugin] = {name: one for name, one in climate.plugins.items() if name != missing}
    return replace(climate, plugins=Plugins(left))


def test_a_lease_of_a_type_that_is_left_out_waits_for_its_plugin(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    less = without(climate, "physical:host")
    with pytest.raises(InvalidInput, match="The physical:host resource type is not supported"):
        make(less, clock)
    with pytest.raises(Conflict, match="The plugin of resource type physical:host is not loaded"):
        update.update(less, MEMBER, lease.id, Changes(end=lease.period.end.replace(minute=59, second=58)))
    clock.forward(hours=1)
    run_due(less)
    waiting = get(climate, lease)
    assert (waiting.status, waiting.event(START).status) == (LeaseStatus.STARTING, UNDONE)
    assert "not loaded" in str(waiting.reason)
    settle(climate, clock, hours=0.2)
    assert get(climate, lease).status is LeaseStatus.ACTIVE
    assert lease_actions.event(climate, lease, START).carried_out


def test_plugins_of_others_import_the_former_names_of_the_interface() -> None:
    assert (plugin.Ask, plugin.Lent) == (plugin.ResourceRequest, plugin.ReservationContext)
