"""The settings of cells."""

from typing import Any

import pytest

from climate.compute.cells.messaging.broker import BrokerTransport
from climate.compute.cells.options import read_capabilities
from climate.configuration import cells
from climate.settings import SettingError, Settings

API_CLASS = "nova.compute.cells_api.ComputeCellsAPI"


def test_cells_are_off_by_default() -> None:
    options = cells.options(Settings())
    assert (options.enabled, options.is_api, options.name) == (False, False, "nova")
    assert options.capabilities == {"hypervisor": ("xenserver", "kvm"), "os": ("linux", "windows")}


def test_c9_a_build_is_tried_ten_times_more_by_default() -> None:
    options = cells.options(Settings())
    assert (options.scheduler_retries, options.scheduler_retry_delay) == (10, 2.0)


def test_c5_the_transport_is_a_choice_and_messages_by_brokers_the_usual_one() -> None:
    assert cells.transport(Settings()) is BrokerTransport


def test_c13_configuration_of_an_api_cell() -> None:
    environ = {
        "CLIMATE_COMPUTE_API_CLASS": API_CLASS,
        "CLIMATE_CELLS_ENABLE": "true",
        "CLIMATE_CELL_NAME": "api-cell",
    }
    options = cells.options(Settings.from_env(environ))
    assert (options.enabled, options.is_api, options.name) == (True, True, "api-cell")


def test_c13_configuration_of_a_child_cell() -> None:
    options = cells.options(Settings.from_env({"CLIMATE_CELLS_ENABLE": "true", "CLIMATE_CELL_NAME": "child-cell1"}))
    assert (options.enabled, options.is_api, options.name) == (True, False, "child-cell1")


def test_cell_type_wins_over_the_class() -> None:
    given = Settings(cells_enable=True, cell_type="compute", compute_api_class=API_CLASS)
    assert not cells.options(given).is_api


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"cell_name": "moo!cow"}, "CLIMATE_CELL_NAME"),
        ({"cell_name": "moo.cow"}, "CLIMATE_CELL_NAME"),
        ({"cell_name": "moo@cow"}, "CLIMATE_CELL_NAME"),
        ({"cell_name": ""}, "CLIMATE_CELL_NAME"),
        ({"cells_capabilities": "linux"}, "CLIMATE_CELLS_CAPABILITIES"),
        ({"cells_capabilities": "os=\x1b[2J"}, "cannot be printed"),
        ({"cells_transport": "pigeon"}, "CLIMATE_CELLS_TRANSPORT='pigeon' must be one of broker"),
        ({"cells_enable": True, "cell_type": "api", "worker_queues": "events, compute"}, "no compute service"),
    ],
)
def test_unusable_settings_are_named(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        cells.check(Settings(**wrong))


def test_unknown_cell_type_is_named() -> None:
    with pytest.raises(SettingError, match="CLIMATE_CELL_TYPE"):
        Settings.from_env({"CLIMATE_CELL_TYPE": "middle"})


def test_capabilities_are_split_at_the_first_equals_sign() -> None:
    assert read_capabilities("a=1=2;3, b=") == {"a": ("1=2", "3"), "b": ("",)}
