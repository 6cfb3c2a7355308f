"""Changes of users, projects, roles and credentials are in the audit trail, without their secrets."""

import json
from typing import Any

import pytest
from sqlalchemy import text

from climate.context import Climate
from climate.domain.audit_trail import AuditKind, change_stream
from climate.domain.errors import Conflict
from climate.domain.policy import ADMIN, Caller
from climate.identity import projects_and_users as directory
from climate.service.journal import audit_trail, consistency_check, rebuild
from climate.service.journal.audit_trail import AuditEntry, AuditQuery
from tests.identity.identity_factory import Asker, Place

V3 = "/identity/v3"
READER = Caller("looker", "p", frozenset({ADMIN}))


def entries(climate: Climate, **wanted: Any) -> list[AuditEntry]:
    return audit_trail.listed(climate, READER, AuditQuery(**wanted))[::-1]


def shown(entry: AuditEntry) -> tuple[Any, ...]:
    change = entry.change
    return str(change.kind), str(change.action), change.before, change.after


def me(here: Place, name: str = "admin") -> str:
    with here.identity.engine.connect() as conn:
        return str(conn.scalar(text("SELECT id FROM identity_users WHERE name = :name"), {"name": name}))


def made(answer: Any, status: int = 201) -> Any:
    assert answer.status_code == status, answer.get_data(as_text=True)
    return answer.json


def test_changes_of_a_user_are_reported(here: Place, admin: Asker) -> None:
    body = {"user": {"name": "ada", "password": "open-sesame-1", "email": "ada@example.com"}}
    ada = made(admin.ask("POST", f"{V3}/users", json=body))["user"]["id"]
    changes = {"enabled": False, "description": "away", "password": "open-sesame-2", "email": "ada@example.com"}
    made(admin.ask("PATCH", f"{V3}/users/{ada}", json={"user": changes}), 200)
    assert admin.ask("DELETE", f"{V3}/users/{ada}").status_code == 204
    fields = {"name": "ada", "description": "", "email": "ada@example.com", "enabled": True, "default_project_id": None}
    last = {**fields, "description": "away", "enabled": False, "roles": [], "application_credentials": []}
    found = entries(here.climate, object_id=ada)
    assert [shown(entry) for entry in found] == [
        ("user", "created", None, {**fields, "password": "set"}),
        (
            *("user", "changed"),
            {"description": "", "enabled": True},
            {"description": "away", "enabled": False, "password": "changed"},
        ),
        ("user", "deleted", last, None),
    ]
    assert {entry.author for entry in found} == {me(here)}
    assert all(entry.request_id.startswith("req-") for entry in found)


def test_a_change_of_ones_own_password_is_reported(here: Place, demo: Asker) -> None:
    own, password = me(here, "demo"), here.password("demo")
    body = {"user": {"original_password": password, "password": "another-password"}}
    assert demo.ask("POST", f"{V3}/users/{own}/password", json=body).status_code == 204
    (entry,) = entries(here.climate, author=own)
    assert shown(entry) == ("user", "changed", {}, {"password": "changed"})


def test_changes_of_projects_and_roles_are_reported(here: Place, admin: Asker) -> None:
    lab = made(admin.ask("POST", f"{V3}/projects", json={"project": {"name": "lab"}}))["project"]["id"]
    made(admin.ask("PATCH", f"{V3}/projects/{lab}", json={"project": {"name": "labs", "enabled": False}}), 200)
    made(admin.ask("PATCH", f"{V3}/projects/{lab}", json={"project": {"name": "labs"}}), 200)
    demo = me(here, "demo")
    role = f"{V3}/projects/{lab}/users/{demo}/roles/member"
    for method in ("PUT", "PUT", "DELETE", "PUT"):
        assert admin.ask(method, role).status_code == 204
    assert admin.ask("DELETE", f"{V3}/projects/{lab}").status_code == 204
    last = {"name": "labs", "description": "", "enabled": False, "application_credentials": []}
    found = entries(here.climate, project_id=lab)
    assert [shown(entry) for entry in found] == [
        ("project", "created", None, {"name": "lab", "description": "", "enabled": True}),
        ("project", "changed", {"name": "lab", "enabled": True}, {"name": "labs", "enabled": False}),
        ("role", "created", None, {"role": "member"}),
        ("role", "deleted", {"role": "member"}, None),
        ("role", "created", None, {"role": "member"}),
        ("project", "deleted", {**last, "roles": [f"member of {demo}"]}, None),
    ]
    assert {entry.author for entry in found} == {me(here)}
    assert [(entry.change.object_id, entry.change.name) for entry in found[2:5]] == [(demo, "demo")] * 3


def test_changes_of_credentials_are_reported(here: Place, demo: Asker) -> None:
    own = me(here, "demo")
    path = f"{V3}/users/{own}/application_credentials"
    body = {
        "application_credential": {"name": "ci", "secret": "very-secret-indeed", "expires_at": "2100-01-01T00:00:00"}
    }
    new = made(demo.ask("POST", path, json=body))["application_credential"]["id"]
    assert demo.ask("DELETE", f"{path}/{new}").status_code == 204
    created, deleted = entries(here.climate, object_id=new)
    fields = {
        "name": "ci",
        "user_id": own,
        "roles": ["member"],
        "description": "",
        "unrestricted": False,
        "expires_at": "2100-01-01T00:00:00+00:00",
    }
    assert shown(created) == ("application_credential", "created", None, fields)
    assert shown(deleted) == ("application_credential", "deleted", fields, None)
    assert (created.author, created.change.project_id) == (own, created.author_project)


def test_the_first_users_are_created_by_the_setup(here: Place) -> None:
    found = entries(here.climate, object_id=me(here))
    assert [shown(entry)[:2] for entry in found] == [("user", "created"), ("role", "created")]
    assert {entry.author for entry in found} == {"climate:setup"}


def test_no_secret_is_in_the_journal(here: Place, admin: Asker) -> None:
    user = {"name": "eve", "password": "hush-hush-password"}
    eve = made(admin.ask("POST", f"{V3}/users", json={"user": user}))["user"]["id"]
    made(admin.ask("PATCH", f"{V3}/users/{eve}", json={"user": {"password": "hush-hush-again"}}), 200)
    body = {"application_credential": {"name": "c", "secret": "hush-hush-secret"}}
    made(admin.ask("POST", f"{V3}/users/{me(here)}/application_credentials", json=body))
    with here.identity.engine.connect() as conn:
        told = json.dumps([str(body) for body in conn.scalars(text("SELECT body FROM journal"))])
        hashes = list(conn.scalars(text("SELECT password_hash FROM identity_users WHERE password_hash IS NOT NULL")))
    assert len(hashes) > 2
    assert not [secret for secret in ("hush-hush", "argon2", here.password("admin"), *hashes) if secret in told]


def test_a_change_that_is_refused_is_not_reported(here: Place) -> None:
    before = len(entries(here.climate))
    with pytest.raises(Conflict):
        directory.create_user(here.identity, READER, directory.NewUser("demo"))
    with pytest.raises(Conflict):
        directory.create_project(here.identity, READER, directory.NewProject("demo"))
    assert len(entries(here.climate)) == before


def test_the_journal_and_the_rows_agree_with_users_in_it(here: Place, admin: Asker) -> None:
    made(admin.ask("POST", f"{V3}/users", json={"user": {"name": "ada", "password": "open-sesame-1"}}))
    made(admin.ask("POST", f"{V3}/projects", json={"project": {"name": "lab"}}))
    assert consistency_check.differences(here.climate) == []
    rebuilt = rebuild.rebuild(here.climate)
    assert rebuilt.streams > 2
    assert rebuilt.left == ()


def test_a_change_that_is_lost_from_the_journal_is_reported(here: Place, admin: Asker) -> None:
    ada = made(admin.ask("POST", f"{V3}/users", json={"user": {"name": "ada", "password": "open-sesame-1"}}))["user"]
    made(admin.ask("PATCH", f"{V3}/users/{ada['id']}", json={"user": {"description": "away"}}), 200)
    stream = change_stream(AuditKind.USER, ada["id"])
    with here.identity.engine.begin() as conn:
        conn.execute(text("SET LOCAL session_replication_role = replica"))
        conn.execute(text("DELETE FROM journal WHERE stream = :id AND version = 1"), {"id": stream})
    assert [(one.stream, one.what) for one in consistency_check.differences(here.climate)] == [
        (stream, "versions are not 1..n")
    ]
