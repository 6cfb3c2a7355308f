"""Who may sign in, how, and how often he may be wrong."""

from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager
from dataclasses import replace
from threading import Event, Semaphore
from typing import Any

import pytest
from argon2 import PasswordHasher
from sqlalchemy import text
from werkzeug.test import TestResponse

from climate.identity import projects_and_users as directory
from climate.identity import roles
from climate.identity.audit_trail import SETUP
from climate.identity.authentication.passwords import Passwords
from climate.identity.authentication.sign_in import GUESSED, network_of
from climate.identity.projects_and_users import NewUser
from climate.identity.store.assignments import Holder
from tests.identity.identity_factory import QUICK, Asker, Place, app_of, password_body

TOKENS = "/identity/v3/auth/tokens"


def test_the_token_says_what_clients_need(here: Place) -> None:
    answer = Asker(app_of(here)).sign_in("admin", here.password("admin"), "admin")
    token = answer.json["token"]
    assert answer.headers["X-Subject-Token"]
    assert token["project"]["name"] == "admin"
    assert token["roles"] == [{"id": "admin", "name": "admin"}]
    assert token["expires_at"].endswith("Z")
    assert {service["type"]: service["endpoints"][0]["url"] for service in token["catalog"]} == {
        "identity": "http://127.0.0.1:8000/identity/v3",
        "compute": "http://127.0.0.1:8000/compute/v2.1",
        "reservation": "http://127.0.0.1:8000/reservation/v1",
        "image": "http://127.0.0.1:8000/image",
        "network": "http://127.0.0.1:8000/network",
        "volumev3": "http://127.0.0.1:8000/volume/v3",
    }
    interfaces = {point["interface"] for service in token["catalog"] for point in service["endpoints"]}
    assert interfaces == {"public", "internal", "admin"}


def test_user_and_project_by_id(here: Place, demo: Asker) -> None:
    shown = demo.ask("GET", TOKENS, headers={"X-Subject-Token": demo.token}).json["token"]
    user = {"id": shown["user"]["id"], "password": here.password("demo")}
    proof = {"methods": ["password"], "password": {"user": user}}
    body = {"auth": {"identity": proof, "scope": {"project": {"id": shown["project"]["id"]}}}}
    assert demo.ask("POST", TOKENS, json=body).status_code == 201


def test_an_unscoped_token_has_neither_project_nor_catalog_nor_rights(here: Place, demo: Asker) -> None:
    body = password_body("demo", here.password("demo"))
    body["auth"]["scope"] = "unscoped"
    answer = demo.ask("POST", TOKENS, json=body)
    assert not {"project", "catalog", "roles"} & answer.json["token"].keys()
    bare = Asker(app_of(here), answer.headers["X-Subject-Token"])
    assert bare.ask("GET", "/identity/v3/auth/projects").json["projects"][0]["name"] == "demo"
    assert bare.ask("GET", "/identity/v3/users").status_code == 403


def test_wrong_password_unknown_user_and_unknown_project_get_the_same_answer(here: Place) -> None:
    asker = Asker(app_of(here))
    answers = [
        asker.sign_in("demo", "wrong"),
        asker.sign_in("nobody", "wrong"),
        asker.sign_in("demo", here.password("demo"), "admin"),
        asker.sign_in("demo", here.password("demo"), "nowhere"),
        asker.sign_in("demo", "x" * 100_000),
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert len({answer.data for answer in answers}) == 1
    assert answers[0].json["error"]["title"] == "Unauthorized"
    assert answers[0].headers["WWW-Authenticate"] == 'Keystone uri="http://127.0.0.1:8000/identity/v3"'


@pytest.mark.parametrize(
    ("auth", "names"),
    [
        (None, "auth"),
        ({}, "auth.identity"),
        ({"identity": {}}, "auth.identity.methods"),
        ({"identity": {"methods": ["oauth1"]}}, "auth.identity.methods"),
        ({"identity": {"methods": ["password"]}}, "auth.identity.password"),
        (
            {"identity": {"methods": ["password"], "password": {"user": {"name": 5}}}},
            "auth.identity.password.user.name",
        ),
        ({"identity": {"methods": ["token"], "token": {"id": None}}}, "auth.identity.token.id"),
        ({"identity": {"methods": ["application_credential"], "application_credential": {}}}, "secret"),
    ],
)
def test_a_body_that_is_no_sign_in_is_refused_with_the_mistake(here: Place, auth: Any, names: str) -> None:
    answer = Asker(app_of(here)).ask("POST", TOKENS, json={"auth": auth})
    assert answer.status_code == 400
    assert names in answer.json["error"]["message"]


def test_a_domain_scope_is_refused_in_clear_words(here: Place) -> None:
    body = password_body("admin", here.password("admin"))
    body["auth"]["scope"] = {"domain": {"id": "default"}}
    answer = Asker(app_of(here)).ask("POST", TOKENS, json=body)
    assert (answer.status_code, "no scope of a domain" in answer.json["error"]["message"]) == (400, True)


def test_only_failures_count_and_they_count_for_a_minute(here: Place) -> None:
    asker = Asker(app_of(here))
    right = here.password("demo")
    assert [asker.sign_in("demo", right).status_code for _ in range(30)] == [201] * 30
    assert [asker.sign_in("demo", "wrong").status_code for _ in range(6)] == [401] * 5 + [429]
    refused = asker.sign_in("demo", right)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "60")
    assert asker.sign_in("admin", here.password("admin")).status_code == 201
    elsewhere = asker.client.post(
        TOKENS, json=password_body("demo", right), environ_overrides={"REMOTE_ADDR": "192.0.2.7"}
    )
    assert elsewhere.status_code == 201
    with here.identity.engine.begin() as conn:
        conn.execute(text("UPDATE identity_failures SET at = at - interval '61 seconds'"))
    assert asker.sign_in("demo", right).status_code == 201


def test_an_address_that_tries_many_names_is_stopped(here: Place) -> None:
    asker = Asker(app_of(here))
    seen = [asker.sign_in(f"user{number}", "wrong").status_code for number in range(21)]
    assert seen == [401] * 20 + [429]


def test_guessing_from_many_addresses_is_slowed_and_locks_nobody_out(here: Place) -> None:
    client, right = app_of(here).test_client(), here.password("demo")

    def tries(address: str, password: str, user: str = "demo") -> TestResponse:
        return client.post(TOKENS, json=password_body(user, password), environ_overrides={"REMOTE_ADDR": address})

    for host in range(GUESSED // 3):
        assert [tries(f"192.0.2.{host}", "wrong").status_code for _ in range(3)] == [401] * 3
    refused = tries("192.0.2.1", right)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "600")
    assert [tries("198.51.100.1", "wrong").status_code for _ in range(3)] == [401, 401, 429]
    assert tries("203.0.113.9", right).status_code == 201
    assert tries("192.0.2.1", here.password("admin"), "admin").status_code == 201
    with here.identity.engine.begin() as conn:
        conn.execute(text("UPDATE identity_failures SET at = at - interval '61 seconds'"))
    assert tries("198.51.100.1", right).status_code == 429
    with here.identity.engine.begin() as conn:
        conn.execute(text("UPDATE identity_failures SET at = at - interval '10 minutes'"))
    assert tries("198.51.100.1", right).status_code == 201


def test_all_addresses_of_one_ipv6_network_are_one(here: Place) -> None:
    client = app_of(here).test_client()
    seen = [
        client.post(
            TOKENS, json=password_body("demo", "wrong"), environ_overrides={"REMOTE_ADDR": f"2001:db8::{host:x}"}
        ).status_code
        for host in range(6)
    ]
    assert seen == [401] * 5 + [429]
    assert network_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert network_of("2001:db8::1") != network_of("2001:db8:0:1::1")


class Held(PasswordHasher):
    """A hasher that tells when it begins, and verifies nothing before it may."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=64, parallelism=1)
        self.begun, self.may = Semaphore(0), Event()
        self.asked = 0

    def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # noqa: A002
        self.asked += 1
        self.begun.release()
        assert self.may.wait(120)
        return super().verify(hash, password)


class Gate(Passwords):
    """Passwords that tell of each sign-in that comes for its turn."""

    arrived = Semaphore(0)

    def turn(self) -> AbstractContextManager[None]:
        self.arrived.release()
        return super().turn()


def test_a_burst_of_sign_ins_leaves_threads_to_those_who_have_signed_in(here: Place, demo: Asker) -> None:
    hasher = Held()
    passwords = Passwords(hasher, at_once=2, waiting=1, patience=0.5)
    app = app_of(replace(here, identity=replace(here.identity, passwords=passwords)))
    with ThreadPoolExecutor(8) as threads:
        burst = [threads.submit(Asker(app).sign_in, f"unknown-{number}", "wrong") for number in range(60)]
        assert all(hasher.begun.acquire(timeout=30) for _ in range(2))
        answered = [done.result() for _, done in zip(range(58), as_completed(burst), strict=False)]
        assert {answer.status_code for answer in answered} == {429}
        assert answered[0].headers["Retry-After"] == "1"
        assert hasher.asked == 2
        assert demo.ask("GET", "/identity/v3/auth/projects").status_code == 200
        hasher.may.set()
    assert sorted(done.result().status_code for done in burst)[:3] == [401, 401, 429]


def test_sign_ins_of_one_user_at_the_same_moment_take_one_hash(here: Place) -> None:
    hasher = Held()
    gate = Gate(hasher, at_once=1, waiting=9)
    app = app_of(replace(here, identity=replace(here.identity, passwords=gate)))
    right = here.password("demo")
    with ThreadPoolExecutor(10) as threads:
        burst = [threads.submit(Asker(app).sign_in, "demo", right) for _ in range(10)]
        assert all(gate.arrived.acquire(timeout=30) for _ in range(10))
        hasher.may.set()
    assert [done.result().status_code for done in burst] == [201] * 10
    assert hasher.asked == 1


def test_a_password_that_was_verified_of_late_takes_no_turn(here: Place) -> None:
    hasher, right = Held(), here.password("demo")
    app = app_of(replace(here, identity=replace(here.identity, passwords=Passwords(hasher, at_once=1, waiting=0))))
    hasher.may.set()
    assert Asker(app).sign_in("demo", right).status_code == 201
    assert hasher.begun.acquire(timeout=30)
    hasher.may.clear()
    with ThreadPoolExecutor(1) as threads:
        stranger = threads.submit(Asker(app).sign_in, "unknown", "wrong")
        assert hasher.begun.acquire(timeout=30)
        assert Asker(app).sign_in("admin", here.password("admin")).status_code == 429
        assert Asker(app).sign_in("demo", right).status_code == 201
        hasher.may.set()
    assert stranger.result().status_code == 401


def test_a_changed_password_is_verified_anew(here: Place, admin: Asker) -> None:
    asker, right = Asker(app_of(here)), here.password("demo")
    user_id = asker.sign_in("demo", right).json["token"]["user"]["id"]
    changed = admin.ask("PATCH", f"/identity/v3/users/{user_id}", json={"user": {"password": "another-word"}})
    assert changed.status_code == 200
    assert asker.sign_in("demo", right).status_code == 401
    assert asker.sign_in("demo", "another-word").status_code == 201


def test_a_burst_does_not_slip_past_the_count_of_failures(here: Place) -> None:
    hasher = Held()
    gate = Gate(hasher, at_once=2, waiting=28)
    app = app_of(replace(here, identity=replace(here.identity, passwords=gate)))
    with ThreadPoolExecutor(30) as threads:
        burst = [threads.submit(Asker(app).sign_in, "demo", "wrong") for _ in range(30)]
        assert all(gate.arrived.acquire(timeout=30) for _ in range(30))
        hasher.may.set()
    assert {done.result().status_code for done in burst} == {401, 429}
    assert hasher.asked <= 6


def test_a_user_has_one_count_of_failures_by_id_and_by_name(here: Place, demo: Asker) -> None:
    shown = demo.ask("GET", TOKENS, headers={"X-Subject-Token": demo.token}).json["token"]
    body = password_body("demo", "wrong")
    assert [demo.client.post(TOKENS, json=body).status_code for _ in range(5)] == [401] * 5
    body["auth"]["identity"]["password"]["user"] = {"id": shown["user"]["id"], "password": "wrong"}
    assert demo.client.post(TOKENS, json=body).status_code == 429


def test_a_hash_with_old_parameters_is_recreated(here: Place) -> None:
    def kept() -> str:
        with here.identity.engine.connect() as conn:
            return conn.execute(text("SELECT password_hash FROM identity_users WHERE name = 'demo'")).scalar_one()

    before = kept()
    stronger = Passwords(PasswordHasher(time_cost=2, memory_cost=128, parallelism=1))
    app = app_of(replace(here, identity=replace(here.identity, passwords=stronger)))
    for _ in range(2):
        assert Asker(app).sign_in("demo", here.password("demo")).status_code == 201
    assert before != kept()
    assert not stronger.outdated(kept())


def test_passwords_are_argon2id_and_nobody_is_verified_as_slowly_as_somebody() -> None:
    class Counting(PasswordHasher):
        asked = 0

        def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # noqa: A002
            self.asked += 1
            return super().verify(hash, password)

    hasher = Counting(time_cost=1, memory_cost=64, parallelism=1)
    passwords = Passwords(hasher)
    assert passwords.hash("secret-word").startswith("$argon2id$")
    assert not passwords.verify(None, "secret-word")
    assert not passwords.verify(passwords.hash("secret-word"), "x" * 5000)
    assert passwords.verify(passwords.hash("secret-word"), "secret-word")
    assert hasher.asked == 3
    assert not passwords.verify(passwords._nobodys, "secret-word")


def test_a_credential_gives_no_more_than_its_maker_has(here: Place, demo: Asker) -> None:
    shown = demo.ask("GET", TOKENS, headers={"X-Subject-Token": demo.token}).json["token"]
    path = f"/identity/v3/users/{shown['user']['id']}/application_credentials"
    more = {"name": "more", "roles": [{"name": "admin"}]}
    assert demo.ask("POST", path, json={"application_credential": more}).status_code == 400
    made = demo.ask("POST", path, json={"application_credential": {"name": "ci", "secret": None, "roles": []}})
    assert made.status_code == 201
    assert demo.ask("POST", path, json={"application_credential": {"name": "ci"}}).status_code == 409
    credential = made.json["application_credential"]
    assert "secret" not in demo.ask("GET", f"{path}/{credential['id']}").json["application_credential"]
    proof = {"id": credential["id"], "secret": credential["secret"]}
    body = {"auth": {"identity": {"methods": ["application_credential"], "application_credential": proof}}}
    answer = demo.ask("POST", TOKENS, json=body)
    program = Asker(app_of(here), answer.headers["X-Subject-Token"])
    assert answer.json["token"]["roles"] == [{"id": "member", "name": "member"}]
    assert program.ask("POST", path, json={"application_credential": {"name": "child"}}).status_code == 403
    assert program.ask("DELETE", f"{path}/{credential['id']}").status_code == 403
    exchange = {"auth": {"identity": {"methods": ["token"], "token": {"id": program.token}}}}
    assert program.ask("POST", TOKENS, json=exchange).status_code == 403
    assert demo.ask("DELETE", f"{path}/{credential['id']}").status_code == 204
    assert program.ask("GET", path).status_code == 401
    assert demo.ask("POST", TOKENS, json=body).status_code == 401


def test_a_credential_may_have_less_than_its_maker_and_loses_what_he_loses(here: Place, admin: Asker) -> None:
    me = admin.ask("GET", TOKENS, headers={"X-Subject-Token": admin.token}).json["token"]["user"]["id"]
    made = directory.create_project(here.identity, SETUP, directory.NewProject("lab"))
    for role in ("member", "reader"):
        roles.assign(here.identity, SETUP, Holder(me), made.id, role)
    maker = Asker(app_of(here))
    maker.sign_in("admin", here.password("admin"), "lab")
    path = f"/identity/v3/users/{me}/application_credentials"

    def credential(*roles: str) -> dict[str, Any]:
        wanted = {"name": "-".join(roles), "roles": [{"id": role} for role in roles]}
        new = maker.ask("POST", path, json={"application_credential": wanted}).json["application_credential"]
        proof = {"id": new["id"], "secret": new["secret"]}
        return {"auth": {"identity": {"methods": ["application_credential"], "application_credential": proof}}}

    def roles_by(body: dict[str, Any]) -> list[str]:
        answer = Asker(app_of(here)).ask("POST", TOKENS, json=body)
        return [role["id"] for role in answer.json["token"]["roles"]] if answer.status_code == 201 else []

    reads, writes, both = credential("reader"), credential("member"), credential("member", "reader")
    assert [roles_by(body) for body in (reads, writes, both)] == [["reader"], ["member"], ["member", "reader"]]
    roles.take(here.identity, SETUP, Holder(me), made.id, "member")
    assert [roles_by(body) for body in (reads, writes, both)] == [["reader"], [], ["reader"]]


def test_a_role_that_is_taken_revokes_tokens_of_its_project_only(here: Place, admin: Asker, demo: Asker) -> None:
    shown = demo.ask("GET", TOKENS, headers={"X-Subject-Token": demo.token}).json["token"]
    me = shown["user"]["id"]
    lab = directory.create_project(here.identity, SETUP, directory.NewProject("lab")).id
    for role in ("member", "reader"):
        roles.assign(here.identity, SETUP, Holder(me), lab, role)
    other = Asker(app_of(here))
    other.sign_in("demo", here.password("demo"), "lab")
    assert admin.ask("DELETE", f"/identity/v3/projects/{lab}/users/{me}/roles/member").status_code == 204
    reads = "/identity/v3/auth/projects"
    assert (demo.ask("GET", reads).status_code, other.ask("GET", reads).status_code) == (200, 401)
    assert other.sign_in("demo", here.password("demo"), "lab").status_code == 201
    assert other.ask("GET", reads).status_code == 200


def test_a_deleted_project_ends_its_tokens_and_credentials(here: Place, admin: Asker, demo: Asker) -> None:
    shown = demo.ask("GET", TOKENS, headers={"X-Subject-Token": demo.token}).json["token"]
    me, project = shown["user"]["id"], shown["project"]["id"]
    path = f"/identity/v3/users/{me}/application_credentials"
    made = demo.ask("POST", path, json={"application_credential": {"name": "ci"}}).json["application_credential"]
    proof = {"id": made["id"], "secret": made["secret"]}
    by_credential = {"identity": {"methods": ["application_credential"], "application_credential": proof}}
    assert demo.ask("POST", TOKENS, json={"auth": by_credential}).status_code == 201
    assert admin.ask("DELETE", f"/identity/v3/projects/{project}").status_code == 204
    assert demo.ask("GET", "/identity/v3/auth/projects").status_code == 401
    assert demo.ask("POST", TOKENS, json={"auth": by_credential}).status_code == 401
    assert demo.sign_in("demo", here.password("demo"), "demo").status_code == 401
    unscoped = demo.sign_in("demo", here.password("demo"))
    assert (unscoped.status_code, "project" in unscoped.json["token"]) == (201, False)
    assert demo.ask("GET", path).json["application_credentials"] == []
    assert admin.ask("GET", f"/identity/v3/users/{me}").json["user"]["default_project_id"] is None
    assert admin.ask("DELETE", f"/identity/v3/projects/{project}").status_code == 404


def test_the_project_of_ones_own_token_is_not_deleted(admin: Asker) -> None:
    shown = admin.ask("GET", TOKENS, headers={"X-Subject-Token": admin.token}).json["token"]
    assert admin.ask("DELETE", f"/identity/v3/projects/{shown['project']['id']}").status_code == 403
    assert admin.ask("GET", "/identity/v3/auth/projects").status_code == 200


def test_lists_of_projects_and_users_are_filtered(here: Place, admin: Asker) -> None:
    directory.create_project(here.identity, SETUP, directory.NewProject("closed", enabled=False))
    directory.create_user(here.identity, SETUP, NewUser("gone", enabled=False))

    def names(kind: str, query: str) -> set[str]:
        return {one["name"] for one in admin.ask("GET", f"/identity/v3/{kind}?{query}").json[kind]}

    assert names("projects", "enabled=false") == {"closed"}
    assert names("projects", "enabled=True") == {"admin", "demo"}
    assert names("users", "enabled=0") == {"gone"}
    assert names("users", "enabled") == {"admin", "demo"}
    assert names("projects", "domain_id=default") == {"admin", "demo", "closed"}
    assert names("projects", "domain_id=other") == names("users", "domain_id=other") == set()


def test_a_credential_ends_when_it_says(here: Place, demo: Asker) -> None:
    shown = demo.ask("GET", TOKENS, headers={"X-Subject-Token": demo.token}).json["token"]
    path = f"/identity/v3/users/{shown['user']['id']}/application_credentials"
    wanted = {"name": "old", "expires_at": "2099-01-01T00:00:00"}
    made = demo.ask("POST", path, json={"application_credential": wanted}).json["application_credential"]
    with here.identity.engine.begin() as conn:
        conn.execute(text("UPDATE identity_application_credentials SET expires_at = now() - interval '1 s'"))
    proof = {"id": made["id"], "secret": made["secret"]}
    body = {"auth": {"identity": {"methods": ["application_credential"], "application_credential": proof}}}
    assert demo.ask("POST", TOKENS, json=body).status_code == 401


def test_a_credential_that_has_ended_already_is_not_made(demo: Asker) -> None:
    shown = demo.ask("GET", TOKENS, headers={"X-Subject-Token": demo.token}).json["token"]
    path = f"/identity/v3/users/{shown['user']['id']}/application_credentials"
    wanted = {"name": "old", "expires_at": "2020-01-01T00:00:00"}
    refused = demo.ask("POST", path, json={"application_credential": wanted})
    assert refused.status_code == 400
    assert "expires_at must be in the future, and is 2020-01-01" in refused.json["error"]["message"]
    assert demo.ask("GET", path).json["application_credentials"] == []


def test_a_credential_does_not_end_beyond_the_calendar(demo: Asker) -> None:
    """Such a moment can be written and never be read again, and with it no credential of its user."""
    shown = demo.ask("GET", TOKENS, headers={"X-Subject-Token": demo.token}).json["token"]
    path = f"/identity/v3/users/{shown['user']['id']}/application_credentials"
    beyond = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00", "9999-12-31T23:59:59")
    for text_ in (*beyond, "1e9", "2030-02-30", "2030-01-01T00:00:00+25:00"):
        wanted = {"name": "ever", "expires_at": text_}
        refused = demo.ask("POST", path, json={"application_credential": wanted})
        assert refused.status_code == 400
        assert "expires_at" in refused.json["error"]["message"]
    assert demo.ask("GET", path).json["application_credentials"] == []
    wanted = {"name": "ci", "expires_at": "2199-12-31T00:00:00+14:00"}
    made = demo.ask("POST", path, json={"application_credential": wanted})
    assert made.json["application_credential"]["expires_at"] == "2199-12-30T10:00:00.000000"


def test_members_see_themselves_and_nothing_else(here: Place, admin: Asker, demo: Asker) -> None:
    me = admin.ask("GET", TOKENS, headers={"X-Subject-Token": demo.token}).json["token"]
    boss = admin.ask("GET", TOKENS, headers={"X-Subject-Token": admin.token}).json["token"]
    v3 = "/identity/v3"
    statuses = {
        path: demo.ask("GET", v3 + path).status_code
        for path in (
            f"/users/{me['user']['id']}",
            f"/projects/{me['project']['id']}",
            "/users",
            f"/users/{boss['user']['id']}",
            f"/users/{boss['user']['id']}/application_credentials",
            f"/projects/{boss['project']['id']}",
            "/projects/nobodys",
            "/projects",
            "/role_assignments",
        )
    }
    assert list(statuses.values()) == [200, 200, 403, 403, 403, 404, 404, 403, 403]
    for path in ("/auth/projects", f"/users/{me['user']['id']}/projects"):
        assert [one["name"] for one in demo.ask("GET", v3 + path).json["projects"]] == ["demo"]
    assert demo.ask("GET", TOKENS, headers={"X-Subject-Token": admin.token}).status_code == 403
    for method, path in (("POST", "/users"), ("POST", "/projects"), ("DELETE", f"/users/{boss['user']['id']}")):
        assert demo.ask(method, v3 + path, json={"user": {"name": "x"}}).status_code == 403


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"name": "x" * 256}, "name"),
        ({"name": 5}, "name"),
        ({"name": "x", "password": "short"}, "password"),
        ({"name": "x", "password": "y" * 129}, "password"),
        ({"name": "x", "enabled": "yes"}, "enabled"),
        ({"name": "x", "default_project_id": "nowhere"}, "default_project_id"),
        ({"name": "x", "description": "y" * 300}, "description"),
    ],
)
def test_a_user_that_cannot_be_is_refused_by_name_of_the_field(admin: Asker, body: Any, names: str) -> None:
    answer = admin.ask("POST", "/identity/v3/users", json={"user": body})
    assert answer.status_code == 400
    assert names in answer.json["error"]["message"]


def test_names_of_any_script_are_kept_and_given_once(here: Place, admin: Asker) -> None:
    made = directory.create_user(here.identity, SETUP, NewUser(name="مريم \u200f👩‍🔬"))
    shown = admin.ask("GET", f"/identity/v3/users/{made.id}").json["user"]
    assert shown["name"] == "مريم \u200f👩‍🔬"
    again = admin.ask("POST", "/identity/v3/users", json={"user": {"name": "demo"}})
    assert again.status_code == 409
    assert QUICK.hash("x") not in str(again.data)
