"""Settings come from CLIMATE_* variables; what cannot be used is named."""

from dataclasses import fields
from pathlib import Path

import pytest

from climate.settings import SettingError, Settings


def test_variables_are_read_in_the_type_of_their_setting() -> None:
    given = {"CLIMATE_PORT": "9000", "CLIMATE_POLL_SECONDS": "0.5", "CLIMATE_LOG_FORMAT": "", "CLIMATE_HOME": "/srv/c"}
    settings = Settings.from_env(given)
    assert (settings.port, settings.poll_seconds, settings.log_format) == (9000, 0.5, "console")
    assert settings.home == Path("/srv/c")


@pytest.mark.parametrize(("text", "is_on"), [("true", True), ("false", False)])
def test_a_flag_is_true_or_false(text: str, is_on: bool) -> None:
    assert Settings.from_env({"CLIMATE_USE_IPV6": text}).use_ipv6 is is_on


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        ("PORT", "http", "is not a number"),
        ("PORT", "70000", "between 1 and 65535"),
        ("POLL_SECONDS", "nan", "between 0.05 and 60"),
        ("LOG_FORMAT", "xml", "one of console, json"),
    ],
)
def test_what_cannot_be_used_is_named(variable: str, text: str, says: str) -> None:
    with pytest.raises(SettingError, match=f"CLIMATE_{variable}='{text}' .*{says}"):
        Settings.from_env({f"CLIMATE_{variable}": text})


def test_each_setting_belongs_to_one_area() -> None:
    names = [f.name for area in Settings.__bases__ for f in fields(area)]
    assert sorted(names) == sorted(f.name for f in fields(Settings))
    assert next(f.name for f in fields(Settings)) == "home"
