"""Bodies of ports: what is read, and what is refused before anything is looked up."""

from typing import Any

import pytest

from api.network.port_bodies import CHANGED_PORT, PORT
from climate.compute.network.ports import FixedIp
from climate.domain.errors import InvalidInput

NETWORK = "6f9d2c7e-0000-4000-8000-00000000abcd"


def test_what_is_read() -> None:
    given = PORT.read({"port": {"network_id": NETWORK, "mac_address": "02:AB:00:00:00:01", "binding:profile": {}}})
    assert (given["network_id"], given["mac_address"]) == (NETWORK, "02:ab:00:00:00:01")
    assert not {"name", "fixed_ips", "security_groups", "named_host"} & given.keys()
    changed = CHANGED_PORT.read(
        {"port": {"name": None, "fixed_ips": [{"ip_address": "10.0.0.3"}], "admin_state_up": 0}}
    )
    assert changed["fixed_ips"] == (FixedIp(None, "10.0.0.3"),)
    assert (changed["name"], changed["admin_up"]) == ("", False)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"network_id": "n"}, "network_id must be a UUID"),
        ({"status": "ACTIVE"}, "port: 'status' cannot be set"),
        ({"name": 7}, "name must be a text"),
        ({"name": "a\nb"}, "name"),
        ({"mac_address": "nobody"}, "mac_address must be like"),
        ({"mac_address": "00:00:00:00:00:00"}, "of one interface"),
        ({"fixed_ips": "10.0.0.3"}, "fixed_ips must be like"),
        ({"fixed_ips": [{"subnet_id": NETWORK}] * 6}, "at most 5"),
        ({"fixed_ips": [{"ip_address": "fd00::1"}]}, "must be an IPv4 address"),
        ({"security_groups": "web"}, "must be a list"),
        ({"security_groups": ["web"]}, "must be a UUID"),
        ({"binding:vnic_type": "direct"}, "must be normal"),
        ({"binding:profile": {"a": 1}}, "not supported"),
        ({"extra_dhcp_opts": [{"opt_name": "x"}]}, "not supported"),
    ],
)
def test_refused_values(values: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        PORT.read({"port": {"network_id": NETWORK, **values}})
    assert says in str(refusal.value)
