"""The types of servers beside what the server answers."""

from typing import Any

import pytest

from climate.cli.response_types import servers
from tests.cli.response_types.answer_types import misfits, recorded


@pytest.mark.parametrize(
    ("path", "key", "kind"),
    [
        ("/servers/detail", "servers", list[servers.Server]),
        ("/flavors/detail", "flavors", list[servers.Flavor]),
        ("/v2/images", "images", list[servers.Named]),
        ("/os-instance-actions", "instanceActions", list[servers.ServerAction]),
        ("/os-hypervisors/detail", "hypervisors", list[servers.Node]),
        ("/os-services", "services", list[servers.ComputeService]),
    ],
)
def test_recorded_answers_are_of_these_types(path: str, key: str, kind: Any) -> None:
    assert misfits(recorded(path, key), kind) == []
