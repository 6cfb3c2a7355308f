"""Domains: created, changed and deleted by administrators, and what that means for sign-ins and tokens."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Connection

from climate.domain.errors import Conflict, Forbidden, InvalidInput, NotAuthenticated, NotFound
from climate.domain.policy import Caller
from climate.identity import domains, groups, projects_and_users, read_operations, roles
from climate.identity.audit_trail import SETUP
from climate.identity.authentication import sign_in
from climate.identity.authentication.tokens import seal
from climate.identity.models import Domain, NameOrId, Project, User
from climate.identity.projects_and_users import NewProject, NewUser
from climate.identity.store.assignments import Holder
from tests.identity.identity_factory import Asker, Place, app_of

PASSWORD = "a-long-password"


class Full:
    """Contents of projects, each of which has a lease."""

    def count(self, conn: Connection, project_id: str) -> Mapping[str, int]:
        return {"leases": 1}

    def delete_settings(self, conn: Connection, author: Caller, project_id: str) -> None:
        """Do nothing."""


def furnished(here: Place, name: str = "Lab") -> tuple[Domain, User, Project]:
    """A domain with a user demo, who has a project demo there."""
    domain = domains.create(here.identity, SETUP, name)
    project = projects_and_users.create_project(here.identity, SETUP, NewProject("demo", domain_id=domain.id))
    user = projects_and_users.create_user(here.identity, SETUP, NewUser("demo", PASSWORD, domain_id=domain.id))
    roles.assign(here.identity, SETUP, Holder(user.id), project.id, "member")
    return domain, user, project


def body(domain: Mapping[str, str], scope: Mapping[str, Any] | None = None) -> dict[str, Any]:
    user = {"name": "demo", "domain": domain, "password": PASSWORD}
    auth: dict[str, Any] = {"identity": {"methods": ["password"], "password": {"user": user}}}
    return {"auth": {**auth, "scope": scope} if scope else auth}


def test_users_and_projects_of_one_name_have_their_domains(here: Place, admin: Asker) -> None:
    domain, user, project = furnished(here)
    for named in ({"name": "lab"}, {"id": domain.id}):
        scope = {"project": {"name": "demo", "domain": named}}
        answer = admin.ask("POST", "/identity/v3/auth/tokens", json=body(named, scope))
        token = answer.json["token"]
        own = {"id": domain.id, "name": "Lab"}
        assert (token["user"]["id"], token["user"]["domain"]) == (user.id, own)
        assert (token["project"]["id"], token["project"]["domain"]) == (project.id, own)
    for named in ({"name": "Default"}, {"name": "other"}, {"id": "other"}):
        assert admin.ask("POST", "/identity/v3/auth/tokens", json=body(named)).status_code == 401


def test_a_disabled_domain_ends_the_tokens_of_its_users_and_projects(here: Place) -> None:
    domain, user, project = furnished(here)
    other = next(one.id for one in read_operations.users(here.identity, "demo") if one.domain_id is None)
    roles.assign(here.identity, SETUP, Holder(other), project.id, "member")
    own = sign_in.by_password(here.identity, NameOrId(id=user.id), PASSWORD, NameOrId(id=project.id), "192.0.2.1")
    strange = sign_in.by_password(
        here.identity, NameOrId(id=other), here.password("demo"), NameOrId(id=project.id), "192.0.2.1"
    )
    unscoped = sign_in.by_password(
        here.identity, NameOrId(id=other), here.password("demo"), sign_in.UNSCOPED, "192.0.2.1"
    )
    domains.change(here.identity, SETUP, domain.id, {"enabled": False})
    for grant in (own, strange):
        with pytest.raises(NotAuthenticated):
            here.identity.authenticate({"X-Auth-Token": seal(here.identity.keys, grant)})
    with pytest.raises(NotAuthenticated):
        sign_in.by_password(here.identity, NameOrId(id=user.id), PASSWORD, sign_in.UNSCOPED, "192.0.2.1")
    with pytest.raises(NotAuthenticated):
        sign_in.by_token(here.identity, unscoped, NameOrId(id=project.id))
    domains.change(here.identity, SETUP, domain.id, {"enabled": True})
    assert sign_in.by_token(here.identity, unscoped, NameOrId(id=project.id)).project_domain_id == domain.id


def test_a_domain_is_deleted_with_its_contents_when_it_is_disabled(here: Place) -> None:
    domain, user, project = furnished(here)
    below = projects_and_users.create_project(here.identity, SETUP, NewProject("below", parent_id=project.id))
    assert below.domain_id == domain.id
    group = groups.create(here.identity, SETUP, "g", domain_id=domain.id)
    with pytest.raises(Forbidden, match="disable it"):
        domains.remove(here.identity, SETUP, domain.id)
    domains.change(here.identity, SETUP, domain.id, {"enabled": False})
    domains.remove(here.identity, SETUP, domain.id)
    for look, one in (
        (read_operations.user, user),
        (read_operations.project, project),
        (read_operations.project, below),
        (read_operations.group, group),
    ):
        with pytest.raises(NotFound):
            look(here.identity, one.id)
    assert [one.id for one in read_operations.domains(here.identity)] == ["default"]


def test_a_domain_whose_projects_have_resources_is_not_deleted(here: Place) -> None:
    domain, user, _ = furnished(here)
    domains.change(here.identity, SETUP, domain.id, {"enabled": False})
    with pytest.raises(Conflict, match="1 leases"):
        domains.remove(replace(here.identity, contents=Full()), SETUP, domain.id)
    assert read_operations.user(here.identity, user.id) == user


def test_the_default_domain_is_fixed(here: Place) -> None:
    with pytest.raises(Forbidden, match="cannot be changed"):
        domains.change(here.identity, SETUP, "default", {"enabled": False})
    with pytest.raises(Forbidden, match="cannot be changed"):
        domains.remove(here.identity, SETUP, "default")


@pytest.mark.parametrize("name", ["Lab", "LAB", "default"])
def test_a_taken_name_is_refused_in_capitals_or_not(here: Place, name: str) -> None:
    domains.create(here.identity, SETUP, "Lab")
    other = domains.create(here.identity, SETUP, "other")
    with pytest.raises(Conflict):
        domains.create(here.identity, SETUP, name)
    with pytest.raises(Conflict):
        domains.change(here.identity, SETUP, other.id, {"name": name})


def test_a_project_stays_in_the_domain_of_the_one_above(here: Place) -> None:
    _, _, project = furnished(here)
    other = domains.create(here.identity, SETUP, "other")
    with pytest.raises(InvalidInput, match="domain_id must be that of project demo"):
        projects_and_users.create_project(
            here.identity, SETUP, NewProject("n", parent_id=project.id, domain_id=other.id)
        )


@pytest.mark.parametrize("create", [NewProject("n", domain_id="none"), NewUser("n", domain_id="none")])
def test_an_unknown_domain_is_refused(here: Place, create: NewProject | NewUser) -> None:
    make: Any = projects_and_users.create_project if isinstance(create, NewProject) else projects_and_users.create_user
    with pytest.raises(NotFound, match="domain"):
        make(here.identity, SETUP, create)


def test_the_password_of_the_administrator_is_reset_in_the_default_domain_only(here: Place) -> None:
    from climate.identity.authentication import recovery

    domain = domains.create(here.identity, SETUP, "Another")
    same = projects_and_users.create_user(here.identity, SETUP, NewUser("admin", PASSWORD, domain_id=domain.id))
    recovery.reset_admin_password(here.identity, here.settings, "another-password", here.said.append)
    sign_in.by_password(here.identity, NameOrId(id=same.id), PASSWORD, None, "192.0.2.1")
    assert Asker(app_of(here)).sign_in("admin", "another-password").status_code == 201


def test_members_see_the_default_domain_and_their_own(here: Place, demo: Asker, admin: Asker) -> None:
    domain, _, _ = furnished(here)
    domains.create(here.identity, SETUP, "hidden")
    member = Asker(app_of(here))
    answer = member.ask("POST", "/identity/v3/auth/tokens", json=body({"id": domain.id}))
    member.token = answer.headers["X-Subject-Token"]

    def names(asker: Asker, query: str = "") -> list[str]:
        return [one["name"] for one in asker.ask("GET", f"/identity/v3/domains{query}").json["domains"]]

    assert names(demo) == ["Default"]
    assert names(member) == ["Default", "Lab"]
    assert names(admin) == ["Default", "Lab", "hidden"]
    assert (names(admin, "?name=LAB"), names(admin, "?enabled=false")) == (["Lab"], [])
    path = f"/identity/v3/domains/{domain.id}"
    assert [asker.ask("GET", path).status_code for asker in (member, demo, admin)] == [200, 404, 200]
