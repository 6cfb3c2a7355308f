"""Bodies of quotas, server groups and cloudpipes."""

from typing import Any

import pytest

from api.compute.projects import project_bodies as bodies
from api.schema.body import Below
from climate.domain.errors import InvalidInput


def test_quota_has_the_names_of_the_engine() -> None:
    given = {"quota_set": {"ram": "-1", "cores": 5, "tenant_id": "p"}}
    assert bodies.QUOTA.read(given) == {"ram_mb": -1, "cores": 5, "force": False}


def test_rules_of_a_group_may_be_empty() -> None:
    group = {"name": "g", "policy": "anti-affinity"}
    for rules, most in ((None, None), ({}, None), ({"max_server_per_host": 2}, 2)):
        assert bodies.GROUP.read({"server_group": group | {"rules": rules}})["most"] == most


@pytest.mark.parametrize(
    ("body", "given", "says"),
    [
        (bodies.QUOTA, {"cores": -2}, "quota_set: cores must be a whole number from 0"),
        (bodies.QUOTA, {"force": "x"}, "force must be true or false"),
        (bodies.QUOTA_57, {"fixed_ips": 1}, "quota_set: 'fixed_ips' cannot be set; there are instances, cores"),
        (bodies.GROUP, {"policies": ["affinity"]}, "server_group has no 'policies'; it may have policy, rules, name"),
        (bodies.GROUP, {"policy": "affinity", "rules": {"x": 1}}, "rules must be empty, or an object with max_server"),
        (bodies.GROUP, {"name": "g"}, "policy must be one of affinity"),
        (
            bodies.GROUP_TO_14,
            {"policies": ["soft-affinity"]},
            "policies must be a list of exactly one of affinity, anti",
        ),
        (bodies.CLOUDPIPE, {"a": 1}, "a cannot be set, only project_id"),
        (bodies.CLOUDPIPE_ADDRESS, {"vpn_ip": "x", "vpn_port": 1}, "vpn_ip must be an IPv4 address"),
    ],
)
def test_refused_keys(body: Below, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        body.read({body.key: given})
    assert str(refused.value).startswith(says)
