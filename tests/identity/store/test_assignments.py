"""Assignments of roles in projects and in the system, as rows."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from climate.identity.models import Project, Role, User
from climate.identity.store import assignments, projects, roles, users
from climate.identity.store.assignments import Filter, Holder
from tests.identity.identity_factory import Place

OPERATOR = Role("f" * 32, "operator", "of robots")


@pytest.fixture
def conn(here: Place) -> Iterator[Connection]:
    """A transaction with a user who has roles in a project and in the system."""
    with here.identity.engine.begin() as conn:
        users.add(conn, User("u", "ada", "", None, enabled=True, default_project_id=None), None)
        projects.add(conn, Project("p", "lab", "", enabled=True))
        roles.add(conn, OPERATOR)
        for project_id, role in (("p", "member"), ("p", OPERATOR.id), (None, "reader")):
            assert assignments.add(conn, Holder("u"), project_id, role)
        yield conn


def test_roles_of_a_scope_have_their_names(conn: Connection) -> None:
    assert assignments.roles(conn, Holder("u"), "p") == [Role("member", "member"), OPERATOR]
    assert assignments.roles(conn, Holder("u"), None) == [Role("reader", "reader")]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter("u"), [("p", "member"), ("p", "operator"), (None, "reader")]),
        (Filter("u", "p"), [("p", "member"), ("p", "operator")]),
        (Filter("u", is_system=True), [(None, "reader")]),
        (Filter("u", role=OPERATOR.id), [("p", "operator")]),
        (Filter("nobody"), []),
    ],
)
def test_a_filter_selects_scopes_and_roles(
    conn: Connection, wanted: Filter, found: list[tuple[str | None, str]]
) -> None:
    assert [(one.project_id, one.role_name) for one in assignments.listing(conn, wanted)] == found


def test_a_second_assignment_changes_nothing_and_each_is_removed_once(conn: Connection) -> None:
    for project_id, role in (("p", "member"), (None, "reader")):
        assert not assignments.add(conn, Holder("u"), project_id, role)
        assert assignments.remove(conn, Holder("u"), project_id, role)
        assert not assignments.remove(conn, Holder("u"), project_id, role)
    assert assignments.roles(conn, Holder("u"), "p") == [OPERATOR]


def test_a_deleted_role_is_taken_from_its_holders(conn: Connection) -> None:
    assert assignments.add(conn, Holder("u"), None, OPERATOR.id)
    assert roles.holders(conn, OPERATOR.id) == [("u", "p"), ("u", None)]
    roles.remove(conn, OPERATOR.id)
    assert roles.holders(conn, OPERATOR.id) == []
    assert roles.named(conn, ["operator", "member"]) == [Role("member", "member")]
