"""The types of networks beside what the server answers."""

from typing import Any

import pytest

from api.reservation.resources.floating_ip_schema import FloatingIpOut
from climate.cli.response_types import networks
from tests.cli.response_types.answer_types import differences, misfits, recorded


@pytest.mark.parametrize(
    ("path", "key", "kind"),
    [
        ("/os-networks", "networks", list[networks.ComputeNetwork]),
        ("/v2.0/agents", "agents", list[networks.NetworkAgent]),
        ("/v2.0/networks", "networks", list[networks.Network]),
        ("/v2.0/subnets", "subnets", list[networks.Subnet]),
        ("/v2.0/floatingips", "floatingips", list[networks.FloatingIp]),
        ("/network-ip-availabilities", "network_ip_availabilities", list[networks.PoolFigures]),
    ],
)
def test_recorded_answers_are_of_these_types(path: str, key: str, kind: Any) -> None:
    assert misfits(recorded(path, key), kind) == []


def test_a_floating_ip_that_can_be_reserved_has_the_keys_of_its_schema() -> None:
    assert differences(networks.ReservableFloatingIp, FloatingIpOut) == []
