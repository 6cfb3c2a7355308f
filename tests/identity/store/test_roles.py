"""Roles as rows, and the rules by which they imply others."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from climate.identity.models import Domain, Role
from climate.identity.store import domains, roles
from tests.identity.identity_factory import Place

PILOT, STUDENT = Role("p", "Pilot"), Role("s", "student", "of the lab", "d")


@pytest.fixture
def conn(here: Place) -> Iterator[Connection]:
    """A transaction with a role for all and one of a domain."""
    with here.identity.engine.begin() as conn:
        domains.add(conn, Domain("d", "Lab"))
        for role in (PILOT, STUDENT):
            roles.add(conn, role)
        yield conn


def test_roles_of_a_domain_are_not_found_by_name(conn: Connection) -> None:
    assert roles.find(conn, "s") == roles.lock(conn, "s") == STUDENT
    assert roles.named(conn, ("s", "student", "Pilot", "p", "reader")) == [PILOT, PILOT, Role("reader", "reader")]
    assert domains.role_ids(conn, "d") == ["s"]


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("pilot", {None}),
        ("STUDENT", {"d"}),
        ("Reader", {None}),
        ("free", set()),
    ],
)
def test_a_name_is_taken_in_a_domain_or_for_all(conn: Connection, name: str, taken: set[str | None]) -> None:
    assert {domain_id for domain_id in (None, "d") if roles.is_name_taken(conn, name, domain_id)} == taken


def test_rules_are_added_listed_and_removed_once(conn: Connection) -> None:
    assert [roles.add_rule(conn, "s", "p") for _ in range(2)] == [True, False]
    assert roles.add_rule(conn, "p", "reader")
    assert roles.rules(conn) == [("p", "reader"), ("s", "p")]
    assert roles.rules(conn, "s") == [("s", "p")]
    assert [roles.remove_rule(conn, "s", "p") for _ in range(2)] == [True, False]
    roles.remove(conn, "p")
    assert roles.rules(conn) == []


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ([], {"a"}),
        ([("a", "b"), ("b", "c"), ("d", "e")], {"a", "b", "c"}),
        ([("a", "b"), ("b", "a")], {"a", "b"}),
    ],
)
def test_closure_has_all_that_follows(rules: list[tuple[str, str]], found: set[str]) -> None:
    assert roles.closure(rules, ("a",)) == found
