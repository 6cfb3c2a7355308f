"""Bodies of security group rules, read into rules."""

from typing import Any

import pytest

from api.network.security_group_bodies import RULE, rule
from climate.domain.errors import InvalidInput

GROUP = "00000000-0000-4000-8000-000000000000"


def read(**values: Any) -> Any:
    wanted = {"security_group_id": GROUP, "direction": "ingress", **values}
    return rule(RULE.read({"security_group_rule": wanted}))


def test_what_is_left_out_is_any() -> None:
    made = read()
    assert (made.group_id, made.version, made.protocol, made.first, made.remote_cidr) == (GROUP, 4, None, None, None)
    assert read(protocol="any").protocol is None
    assert read(protocol=6, port_range_min=1, port_range_max=2).number == 6
    assert read(protocol="icmp", port_range_min=8).last is None
    assert read(ethertype="IPv6", remote_ip_prefix="2001:db8::1").remote_cidr == "2001:db8::1/128"


@pytest.mark.parametrize(
    "values",
    [
        {"protocol": True},
        {"protocol": "tcp", "port_range_min": 0, "port_range_max": 1},
        {"protocol": "gre", "port_range_min": 1, "port_range_max": 1},
        {"protocol": "icmp", "port_range_min": 8, "port_range_max": 256},
        {"remote_ip_prefix": 7},
        {"ethertype": "IPv6", "remote_ip_prefix": "192.0.2.0/24"},
    ],
)
def test_what_does_not_fit_together_is_refused(values: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        read(**values)
