"""Roles besides the default ones, and roles in the whole system."""

from dataclasses import replace

import pytest

from climate.domain.errors import Conflict, Forbidden, InvalidInput, NotAuthenticated, NotFound
from climate.domain.policy import Caller, policy_of, require
from climate.identity import domains, projects_and_users, read_operations, roles
from climate.identity.audit_trail import SETUP
from climate.identity.models import Role
from climate.identity.store.assignments import Filter, Holder
from tests.identity.identity_factory import Asker, Place, app_of, password_body

TOKENS = "/identity/v3/auth/tokens"


def user_id(here: Place, name: str) -> str:
    return next(one.id for one in read_operations.users(here.identity, name))


def project_id(here: Place, name: str) -> str:
    return next(one.id for one in read_operations.projects(here.identity, name))


def for_system(here: Place, user: str) -> Asker:
    """Sign in for the whole system."""
    asker = Asker(app_of(here))
    body = password_body(user, here.password(user))
    body["auth"]["scope"] = {"system": {"all": True}}
    answer = asker.ask("POST", TOKENS, json=body)
    asker.token = answer.headers.get("X-Subject-Token", "")
    return asker


def test_a_role_is_created_renamed_and_deleted(here: Place) -> None:
    made = roles.create(here.identity, SETUP, "operator", "of robots")
    assert read_operations.role(here.identity, made.id) == Role(made.id, "operator", "of robots")
    changed = roles.change(here.identity, SETUP, made.id, "Operator", None)
    assert read_operations.role(here.identity, made.id) == changed == Role(made.id, "Operator", "of robots")
    roles.remove(here.identity, SETUP, made.id)
    with pytest.raises(NotFound):
        read_operations.role(here.identity, made.id)


@pytest.mark.parametrize("name", ["operator", "OPERATOR", "admin", "Admin", "reader"])
def test_a_taken_name_is_refused_in_capitals_or_not(here: Place, name: str) -> None:
    roles.create(here.identity, SETUP, "operator")
    other = roles.create(here.identity, SETUP, "other")
    with pytest.raises(Conflict):
        roles.create(here.identity, SETUP, name)
    with pytest.raises(Conflict):
        roles.change(here.identity, SETUP, other.id, name, None)


@pytest.mark.parametrize("name", ["admin", "manager", "member", "reader", "service"])
def test_a_default_role_is_neither_changed_nor_deleted(here: Place, name: str) -> None:
    with pytest.raises(Forbidden, match="default role"):
        roles.change(here.identity, SETUP, name, "other", None)
    with pytest.raises(Forbidden, match="default role"):
        roles.remove(here.identity, SETUP, name)


@pytest.mark.parametrize("name", ["", " ", "x" * 256, "a\nb"])
def test_bad_names_are_refused(here: Place, name: str) -> None:
    with pytest.raises(InvalidInput, match="name must be a text"):
        roles.create(here.identity, SETUP, name)


def test_a_deleted_role_ends_the_tokens_of_its_holders_at_once(here: Place, demo: Asker) -> None:
    made = roles.create(here.identity, SETUP, "operator")
    me, project = user_id(here, "demo"), project_id(here, "demo")
    roles.assign(here.identity, SETUP, Holder(me), project, made.id)
    asker = Asker(app_of(here))
    asker.sign_in("demo", here.password("demo"), "demo")
    roles.remove(here.identity, SETUP, made.id)
    with pytest.raises(NotAuthenticated):
        here.identity.authenticate({"X-Auth-Token": asker.token})
    assert [role.id for role in read_operations.roles(here.identity, Holder(me), project)] == ["member"]


def test_a_role_of_ones_own_allows_what_a_rule_says_and_nothing_else() -> None:
    policy = policy_of({"oshosts:get": "role:operator"}, {})
    operator = Caller("u", "p", frozenset({"operator"}), policy=policy)
    require(operator, "oshosts:get")
    for action in ("leases:get", "servers:get", "identity:admin"):
        with pytest.raises(Forbidden):
            require(operator, action)


def test_a_manager_may_do_what_a_member_may(here: Place) -> None:
    me, project = user_id(here, "demo"), project_id(here, "demo")
    roles.assign(here.identity, SETUP, Holder(me), project, "manager")
    roles.take(here.identity, SETUP, Holder(me), project, "member")
    asker = Asker(app_of(here))
    answer = asker.sign_in("demo", here.password("demo"), "demo")
    assert answer.json is not None
    assert answer.json["token"]["roles"] == [{"id": "manager", "name": "manager"}]
    caller = here.identity.authenticate({"X-Auth-Token": asker.token})
    require(caller, "leases:post")
    with pytest.raises(Forbidden):
        require(caller, "identity:admin")


def test_a_manager_of_another_identity_service_is_mapped_by_rules_only() -> None:
    mapped = policy_of({}, {}).mapped(["manager"], "p", "u")
    with pytest.raises(Forbidden):
        require(Caller("u", "p", mapped), "leases:post")


def test_a_token_shows_the_id_and_the_name_of_each_role(here: Place) -> None:
    made = roles.create(here.identity, SETUP, "operator")
    roles.assign(here.identity, SETUP, Holder(user_id(here, "demo")), project_id(here, "demo"), made.id)
    answer = Asker(app_of(here)).sign_in("demo", here.password("demo"), "demo")
    expected = [{"id": "member", "name": "member"}, {"id": made.id, "name": "operator"}]
    assert answer.json is not None
    assert answer.json["token"]["roles"] == expected


def test_a_credential_has_a_role_by_its_id_after_a_new_name(here: Place, demo: Asker) -> None:
    made = roles.create(here.identity, SETUP, "operator")
    me = user_id(here, "demo")
    roles.assign(here.identity, SETUP, Holder(me), project_id(here, "demo"), made.id)  # after the token was issued
    body = {"application_credential": {"name": "ci", "roles": [{"id": made.id}]}}
    answer = demo.ask("POST", f"/identity/v3/users/{me}/application_credentials", json=body)
    assert answer.status_code == 201, answer.text
    credential = answer.json["application_credential"]
    assert credential["roles"] == [{"id": made.id, "name": "operator", "domain_id": None}]
    roles.change(here.identity, SETUP, made.id, "pilot", None)
    proof = {"id": credential["id"], "secret": credential["secret"]}
    signed = {"auth": {"identity": {"methods": ["application_credential"], "application_credential": proof}}}
    shown = Asker(app_of(here)).ask("POST", TOKENS, json=signed)
    assert shown.json["token"]["roles"] == [{"id": made.id, "name": "pilot"}]


def test_a_credential_with_an_unknown_role_is_refused(here: Place, demo: Asker) -> None:
    body = {"application_credential": {"name": "ci", "roles": [{"id": "reader"}, {"id": "unknown"}]}}
    answer = demo.ask("POST", f"/identity/v3/users/{user_id(here, 'demo')}/application_credentials", json=body)
    assert (answer.status_code, "must be among those of the user" in answer.text) == (400, True)


def test_without_a_role_in_the_system_no_token_is_issued_for_it(here: Place, demo: Asker) -> None:
    assert for_system(here, "demo").token == ""
    assert demo.ask("GET", "/identity/v3/auth/system").json["system"] == []


def test_a_reader_of_the_system_reads_all_and_changes_nothing(here: Place, demo: Asker) -> None:
    me, project = user_id(here, "demo"), project_id(here, "admin")
    roles.assign(here.identity, SETUP, Holder(me), None, "reader")
    assert demo.ask("GET", "/identity/v3/auth/system").json["system"] == [{"all": True}]
    reader = for_system(here, "demo")
    token = reader.ask("GET", TOKENS, headers={"X-Subject-Token": reader.token}).json["token"]
    assert (token["system"], token["roles"]) == ({"all": True}, [{"id": "reader", "name": "reader"}])
    assert "project" not in token
    paths = ("users", "projects", f"projects/{project}", f"users/{user_id(here, 'admin')}", "role_assignments")
    assert [reader.ask("GET", f"/identity/v3/{path}").status_code for path in paths] == [200] * 5
    assert len(reader.ask("GET", "/identity/v3/projects").json["projects"]) == 2
    changes = (("POST", "projects", {"project": {"name": "n"}}), ("POST", "users", {"user": {"name": "n"}}))
    assert [reader.ask(one, f"/identity/v3/{path}", json=body).status_code for one, path, body in changes] == [403] * 2


@pytest.mark.parametrize("path", ["/compute/v2.1/servers", "/network/v2.0/networks", "/reservation/v1/leases"])
def test_other_services_refuse_a_token_of_the_system(here: Place, path: str) -> None:
    roles.assign(here.identity, SETUP, Holder(user_id(here, "admin")), None, "admin")
    answer = for_system(here, "admin").ask("GET", path)
    assert (answer.status_code, "needs a token of a project" in answer.text) == (403, True)


def test_a_role_taken_in_the_system_ends_its_tokens_and_no_others(here: Place, demo: Asker) -> None:
    me = user_id(here, "demo")
    roles.assign(here.identity, SETUP, Holder(me), None, "reader")
    reader = for_system(here, "demo")
    roles.take(here.identity, SETUP, Holder(me), None, "reader")
    assert reader.ask("GET", "/identity/v3/roles").status_code == 401
    assert demo.ask("GET", "/identity/v3/roles").status_code == 200
    with pytest.raises(NotFound):
        roles.take(here.identity, SETUP, Holder(me), None, "reader")


def test_an_administrator_with_the_password_of_a_user_changes_it(here: Place, admin: Asker, demo: Asker) -> None:
    path = f"/identity/v3/users/{user_id(here, 'demo')}/password"
    wrong = {"user": {"original_password": "wrong-password", "password": "another-password"}}
    right = {"user": {"original_password": here.password("demo"), "password": "another-password"}}
    assert [admin.ask("POST", path, json=body).status_code for body in (wrong, right)] == [401, 204]
    assert Asker(app_of(here)).sign_in("demo", "another-password").status_code == 201
    other = f"/identity/v3/users/{user_id(here, 'admin')}/password"
    assert Asker(app_of(here), demo.token).ask("POST", other, json=right).status_code in (401, 403)


def test_roles_that_are_implied_are_in_tokens_until_the_rule_ends(here: Place) -> None:
    operator, pilot = (roles.create(here.identity, SETUP, name) for name in ("operator", "pilot"))
    me, project = Holder(user_id(here, "demo")), project_id(here, "demo")
    roles.imply(here.identity, SETUP, operator.id, pilot.id)
    roles.imply(here.identity, SETUP, pilot.id, "manager")
    roles.take(here.identity, SETUP, me, project, "member")
    roles.assign(here.identity, SETUP, me, project, operator.id)
    asker = Asker(app_of(here))
    asker.sign_in("demo", here.password("demo"), "demo")
    caller = here.identity.authenticate({"X-Auth-Token": asker.token})
    assert caller.roles >= {"operator", "pilot", "manager"}
    require(caller, "leases:post")
    wanted = Filter(me.id, project, effective=True)
    assert {one.role_name for one in read_operations.role_assignments(here.identity, wanted)} == {
        "operator",
        "pilot",
        "manager",
    }
    found = read_operations.role_assignments(here.identity, replace(wanted, role="manager"))
    assert [one.role_name for one in found] == ["manager"]
    roles.end_implication(here.identity, SETUP, pilot.id, "manager")
    with pytest.raises(NotAuthenticated):
        here.identity.authenticate({"X-Auth-Token": asker.token})
    asker.sign_in("demo", here.password("demo"), "demo")
    with pytest.raises(Forbidden):
        require(here.identity.authenticate({"X-Auth-Token": asker.token}), "leases:post")
    roles.remove(here.identity, SETUP, pilot.id)
    assert read_operations.role_rules(here.identity) == {}
    assert asker.ask("GET", "/identity/v3/roles").status_code == 401


def test_rules_in_a_circle_end(here: Place) -> None:
    first, second = (roles.create(here.identity, SETUP, name) for name in ("first", "second"))
    for prior, implied in ((first, second), (second, first)):
        roles.imply(here.identity, SETUP, prior.id, implied.id)
    me, project = user_id(here, "demo"), project_id(here, "demo")
    roles.assign(here.identity, SETUP, Holder(me), project, second.id)
    assert [one.name for one in read_operations.effective_roles(here.identity, me, project)] == [
        "first",
        "member",
        "second",
    ]


def test_rules_that_would_change_default_roles_are_refused(here: Place) -> None:
    made = roles.create(here.identity, SETUP, "operator")
    for prior, implied, error in (
        (made.id, "admin", Forbidden),
        ("reader", "member", Forbidden),
        (made.id, made.id, InvalidInput),
        (made.id, "none", NotFound),
        ("none", made.id, NotFound),
    ):
        with pytest.raises(error):
            roles.imply(here.identity, SETUP, prior, implied)
    with pytest.raises(NotFound, match="does not imply"):
        roles.end_implication(here.identity, SETUP, made.id, "reader")


def test_a_role_of_a_domain_is_in_no_token_but_what_it_implies_is(here: Place) -> None:
    lab = domains.create(here.identity, SETUP, "Lab")
    own = roles.create(here.identity, SETUP, "student", domain_id=lab.id)
    assert roles.create(here.identity, SETUP, "student").id != own.id
    roles.imply(here.identity, SETUP, own.id, "reader")
    project = projects_and_users.create_project(
        here.identity, SETUP, projects_and_users.NewProject("course", domain_id=lab.id)
    )
    me = Holder(user_id(here, "demo"))
    roles.assign(here.identity, SETUP, me, project.id, own.id)
    assert read_operations.roles(here.identity, me, project.id) == [own]
    assert [one.name for one in read_operations.effective_roles(here.identity, me.id, project.id)] == ["reader"]
    wanted = Filter(me.id, project.id, effective=True)
    assert [one.role for one in read_operations.role_assignments(here.identity, wanted)] == ["reader"]
    for place in (project_id(here, "demo"), None):
        with pytest.raises(Forbidden, match="projects of that domain only"):
            roles.assign(here.identity, SETUP, me, place, own.id)
    operator = roles.create(here.identity, SETUP, "operator")
    with pytest.raises(Forbidden, match="belongs to no domain"):
        roles.imply(here.identity, SETUP, operator.id, own.id)
    domains.change(here.identity, SETUP, lab.id, {"enabled": False})
    domains.remove(here.identity, SETUP, lab.id)
    with pytest.raises(NotFound):
        read_operations.role(here.identity, own.id)


def test_a_name_of_a_role_is_taken_once_in_a_domain(here: Place) -> None:
    lab = domains.create(here.identity, SETUP, "Lab")
    roles.create(here.identity, SETUP, "student", domain_id=lab.id)
    with pytest.raises(Conflict):
        roles.create(here.identity, SETUP, "STUDENT", domain_id=lab.id)
    with pytest.raises(NotFound, match="domain"):
        roles.create(here.identity, SETUP, "student", domain_id="none")
