"""Values of security groups: what is the same traffic, and what groups begin with."""

from dataclasses import replace
from datetime import UTC, datetime

from climate.compute.models.security_group import (
    EGRESS,
    INGRESS,
    SecurityRule,
    default_group,
    default_id,
    new_group,
)

SSH = SecurityRule("1", "g", INGRESS, 4, "tcp", 22, 22)


def test_names_and_numbers_of_protocols_are_the_same_traffic() -> None:
    assert SSH.traffic == replace(SSH, id="2", protocol="6", description="other").traffic
    for other in ({"protocol": "udp"}, {"version": 6}, {"last": 23}, {"remote_cidr": "192.0.2.0/24"}):
        assert replace(SSH, **other).traffic != SSH.traffic
    assert (replace(SSH, protocol="icmp").number, replace(SSH, protocol="icmp", version=6).number) == (1, 58)
    assert replace(SSH, protocol=None).number is None


def test_default_is_the_same_each_time_and_another_for_each_project() -> None:
    first = default_group("a")
    assert first == default_group("a")
    assert (first.id, first.name) == (default_id("a"), "default")
    assert first.id != default_id("b")
    assert {(rule.direction, rule.version, rule.protocol) for rule in first.rules} == {
        (direction, version, None) for direction in (INGRESS, EGRESS) for version in (4, 6)
    }


def test_a_new_group_lets_its_servers_send() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    group, other = new_group("a", "web", "", now), new_group("a", "web", "", now)
    assert [(rule.direction, rule.version) for rule in group.rules] == [(EGRESS, 4), (EGRESS, 6)]
    assert {rule.group_id for rule in group.rules} == {group.id}
    assert len({group.id, other.id, *(rule.id for rule in (*group.rules, *other.rules))}) == 6
