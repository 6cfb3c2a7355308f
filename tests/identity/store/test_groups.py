"""Groups of users as rows, and the roles that their members have."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection

from climate.identity.models import Group, Project, Role, User
from climate.identity.store import assignments, groups, projects, roles, users
from climate.identity.store.assignments import Filter, Holder
from tests.identity.identity_factory import Place

OPERATORS = Group("g", "operators")
OF_GROUP = Holder("g", is_group=True)


@pytest.fixture
def conn(here: Place) -> Iterator[Connection]:
    """A transaction with a group of one of two users, which has roles in a project and in the system."""
    with here.identity.engine.begin() as conn:
        for user_id in ("u", "v"):
            users.add(conn, User(user_id, user_id, "", None, enabled=True, default_project_id=None), None)
        projects.add(conn, Project("p", "lab", "", enabled=True))
        groups.add(conn, OPERATORS)
        assert groups.add_member(conn, "g", "u")
        for project_id, role in (("p", "member"), (None, "reader")):
            assert assignments.add(conn, OF_GROUP, project_id, role)
        assert assignments.add(conn, Holder("u"), "p", "member")
        yield conn


def names(found: list[Role]) -> list[str]:
    return [role.name for role in found]


def test_members_have_the_roles_of_their_groups_once(conn: Connection) -> None:
    assert [names(assignments.effective(conn, user, "p")) for user in ("u", "v")] == [["member"], []]
    assert [names(assignments.effective(conn, user, None)) for user in ("u", "v")] == [["reader"], []]
    assert names(assignments.roles(conn, Holder("u"), None)) == []
    assert names(assignments.roles(conn, OF_GROUP, None)) == ["reader"]


def test_members_are_added_and_removed_once(conn: Connection) -> None:
    assert groups.members(conn, "g") == ["u"]
    assert (groups.add_member(conn, "g", "v"), groups.add_member(conn, "g", "v")) == (True, False)
    assert [user.id for user in users.listing(conn, group_id="g")] == ["u", "v"]
    assert (groups.remove_member(conn, "g", "u"), groups.remove_member(conn, "g", "u")) == (True, False)
    assert ([one.id for one in groups.listing(conn, "v")], groups.listing(conn, "u")) == (["g"], [])


def test_members_see_the_projects_of_their_groups(conn: Connection) -> None:
    assert assignments.remove(conn, Holder("u"), "p", "member")
    assert [one.id for one in projects.usable(conn, "u")] == ["p"]
    assert (assignments.is_active_member(conn, "u", "p"), assignments.is_active_member(conn, "v", "p")) == (True, False)
    groups.remove(conn, "g")
    assert projects.usable(conn, "u") == []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Filter(project_id="p"), [("u", False, "member"), ("g", True, "member")]),
        (Filter(group_id="g"), [("g", True, "member"), ("g", True, "reader")]),
        (Filter(user_id="u"), [("u", False, "member")]),
        (Filter(user_id="u", effective=True), [("u", False, "member"), ("u", False, "reader")]),
    ],
)
def test_assignments_of_groups_are_listed(conn: Connection, wanted: Filter, found: list[tuple[str, bool, str]]) -> None:
    assert [(one.user_id, one.of_group, one.role) for one in assignments.listing(conn, wanted)] == found


def test_holders_of_a_role_are_the_members_too(conn: Connection) -> None:
    roles.add(conn, Role("r", "pilot"))
    assert assignments.add(conn, OF_GROUP, "p", "r")
    assert roles.holders(conn, "r") == [("u", "p")]
    roles.remove(conn, "r")
    assert names(assignments.roles(conn, OF_GROUP, "p")) == ["member"]


def test_a_group_is_locked_and_changed(conn: Connection) -> None:
    groups.change(conn, "g", {"name": "pilots", "extra": {"floor": 3}})
    assert groups.lock(conn, "g") == groups.find(conn, "g") == Group("g", "pilots", extra={"floor": 3})
    assert groups.find(conn, "other") is None
