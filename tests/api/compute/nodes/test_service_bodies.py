"""Bodies of services, hosts and aggregate actions."""

from typing import Any

import pytest

from api.compute.nodes import service_bodies as bodies
from climate.domain.errors import InvalidInput

NOTHING: dict[str, Any] = {"enabled": None, "reason": None, "forced_down": None}


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ({"status": "enabled", "disabled_reason": None}, {"enabled": True}),
        ({"status": "disabled", "disabled_reason": "why"}, {"enabled": False, "reason": "why"}),
        ({"forced_down": "true"}, {"forced_down": True}),
        ({"status": None, "forced_down": False}, {"forced_down": False}),
    ],
)
def test_change_of_a_service(body: dict[str, Any], change: dict[str, Any]) -> None:
    assert bodies.service(body) == NOTHING | change


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "No updates were requested. Fields 'status' or 'forced_down'"),
        ({"status": None}, "No updates were requested."),
        ({"status": "off"}, "status must be enabled or disabled, not 'off'"),
        ({"status": []}, "status must be enabled or disabled, not '[]'"),
        ({"disabled_reason": "why"}, "Specifying disabled_reason requires that status is 'disabled'."),
        ({"status": "enabled", "x": 1}, "there is no key 'x'; there are disabled_reason, forced_down, status"),
        ({"forced_down": None}, "forced_down must be true or false"),
    ],
)
def test_refused_service(body: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        bodies.service(body)
    assert str(refused.value).startswith(says)


def test_change_of_a_host() -> None:
    begin = {"maintenance_mode": " Enable", "reason": "r", "status": "disable"}
    assert bodies.host(begin) == {"maintenance_mode": True, "reason": "r", "status": False}
    assert bodies.host({"maintenance_mode": "disable"}) == {"maintenance_mode": False}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "give status or maintenance_mode"),
        ({"reason": "r"}, "give status or maintenance_mode"),
        ({"maintenance_mode": "disable", "reason": "r"}, "reason belongs to maintenance_mode: enable"),
        ({"status": "on"}, "status must be enable or disable, not 'on'"),
    ],
)
def test_refused_host(body: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        bodies.host(body)
    assert str(refused.value).startswith(says)
