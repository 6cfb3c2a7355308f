"""Roles that imply others."""

import pytest

from climate.identity.models import ROLES, implied


@pytest.mark.parametrize(
    ("role", "found"),
    [
        ("admin", {"admin", "manager", "member", "reader"}),
        ("manager", {"manager", "member", "reader"}),
        ("member", {"member", "reader"}),
        ("reader", {"reader"}),
        ("service", {"service"}),
        ("operator", {"operator"}),
    ],
)
def test_a_role_implies_the_lesser_ones(role: str, found: set[str]) -> None:
    assert implied([role]) == found


def test_no_role_implies_the_service() -> None:
    assert [role for role in ROLES if "service" in implied([role])] == ["service"]
