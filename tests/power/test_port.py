"""What is found by its name, and what is never shown."""

from pathlib import Path
from typing import Any

import pytest
from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin

from climate import power
from climate.power import Target


def test_the_drivers_are_found_by_entry_points_and_write_nothing(tmp_path: Path) -> None:
    drivers = power.load(tmp_path / "power")
    assert {"memory", "redfish", "ipmi"} <= set(drivers)
    assert list(tmp_path.iterdir()) == []


def test_a_target_shows_no_secret() -> None:
    target = Target("n1", {"address": "bmc"}, {"password": "correct horse"})
    for shown in (repr(target), str(target), f"{target}", repr([target])):
        assert "bmc" in shown
        assert "horse" not in shown


@pytest.mark.parametrize("name", ["memory", "redfish", "ipmi"])
def test_settings_can_be_described(tmp_path: Path, name: str) -> None:
    driver = power.load(tmp_path)[name]
    spec = APISpec("t", "1", "3.1.0", plugins=[MarshmallowPlugin()])
    spec.components.schema("Settings", schema=driver.schema)
    described: dict[str, Any] = spec.to_dict()["components"]["schemas"]["Settings"]["properties"]
    assert set(described) == set(driver.schema().fields)
    assert {field for field in described if described[field].get("writeOnly")} == driver.secrets
