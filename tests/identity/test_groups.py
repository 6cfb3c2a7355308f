"""Groups: their members have the roles of the group, until they leave it."""

from collections.abc import Callable

import pytest

from climate.domain.errors import Conflict, NotAuthenticated, NotFound
from climate.identity import groups, projects_and_users, read_operations, roles
from climate.identity.audit_trail import SETUP
from climate.identity.authentication import sign_in
from climate.identity.authentication.tokens import Grant, seal
from climate.identity.models import Group, NameOrId
from climate.identity.store.assignments import Holder
from tests.identity.identity_factory import Place

Change = Callable[[Place, Group, str, str], None]


@pytest.fixture
def operators(here: Place) -> tuple[Group, str, str]:
    """A group with user demo, which has a role in a project of which that user is no member otherwise."""
    group = groups.create(here.identity, SETUP, "operators")
    user = next(one.id for one in read_operations.users(here.identity, "demo"))
    project = projects_and_users.create_project(here.identity, SETUP, projects_and_users.NewProject("lab"))
    groups.add_member(here.identity, SETUP, group.id, user)
    roles.assign(here.identity, SETUP, Holder(group.id, is_group=True), project.id, "member")
    return group, user, project.id


def grant(here: Place, user: str, project: str) -> Grant:
    return sign_in.by_password(
        here.identity, NameOrId(id=user), here.password("demo"), NameOrId(id=project), "192.0.2.1"
    )


def is_valid(here: Place, one: Grant) -> bool:
    try:
        here.identity.authenticate({"X-Auth-Token": seal(here.identity.keys, one)})
    except NotAuthenticated:
        return False
    return True


def leave(here: Place, group: Group, user: str, project: str) -> None:
    groups.remove_member(here.identity, SETUP, group.id, user)


def lose_role(here: Place, group: Group, user: str, project: str) -> None:
    roles.take(here.identity, SETUP, Holder(group.id, is_group=True), project, "member")


def end(here: Place, group: Group, user: str, project: str) -> None:
    groups.remove(here.identity, SETUP, group.id)


@pytest.mark.parametrize("change", [leave, lose_role, end])
def test_who_loses_a_group_loses_its_roles_and_tokens(
    here: Place, operators: tuple[Group, str, str], change: Change
) -> None:
    group, user, project = operators
    first = grant(here, user, project)
    assert (first.roles, is_valid(here, first)) == (("member",), True)
    change(here, group, user, project)
    assert not is_valid(here, first)
    with pytest.raises(NotAuthenticated):
        grant(here, user, project)


def test_a_role_of_a_group_in_the_system_is_one_of_its_members(here: Place, operators: tuple[Group, str, str]) -> None:
    group, user, _ = operators
    roles.assign(here.identity, SETUP, Holder(group.id, is_group=True), None, "reader")
    assert [one.name for one in read_operations.effective_roles(here.identity, user, None)] == ["reader"]
    assert read_operations.roles(here.identity, Holder(user), None) == []


def test_unknown_groups_users_and_members_are_refused(here: Place, operators: tuple[Group, str, str]) -> None:
    group, user, project = operators
    stranger = next(one.id for one in read_operations.users(here.identity, "admin"))
    for fails in (
        lambda: groups.add_member(here.identity, SETUP, "none", user),
        lambda: groups.add_member(here.identity, SETUP, group.id, "none"),
        lambda: groups.remove_member(here.identity, SETUP, group.id, stranger),
        lambda: groups.create(here.identity, SETUP, "n", domain_id="none"),
        lambda: roles.assign(here.identity, SETUP, Holder("none", is_group=True), project, "member"),
        lambda: read_operations.members(here.identity, "none"),
    ):
        with pytest.raises(NotFound):
            fails()


def test_a_name_is_taken_once(here: Place, operators: tuple[Group, str, str]) -> None:
    other = groups.create(here.identity, SETUP, "others")
    with pytest.raises(Conflict):
        groups.create(here.identity, SETUP, "operators")
    with pytest.raises(Conflict):
        groups.change(here.identity, SETUP, other.id, {"name": "operators"})
    changed = groups.change(here.identity, SETUP, other.id, {"description": "of robots"})
    assert read_operations.group(here.identity, other.id) == changed
