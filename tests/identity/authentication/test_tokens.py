"""A token is believed exactly as long as it should be."""

from base64 import b64encode
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

import pytest
from cryptography.fernet import Fernet
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from climate.domain.errors import NotAuthenticated
from climate.identity import projects_and_users as directory
from climate.identity.audit_trail import SETUP
from climate.identity.authentication import sign_in
from climate.identity.authentication.revocation_cache import TIDY, View, Watch
from climate.identity.authentication.tokens import MOST_CACHED, Grant, GrantCache, seal, unseal
from climate.identity.keys import KEPT, KeyRing
from climate.identity.models import NameOrId
from climate.identity.store import revocations
from climate.identity.store.revocations import TOKEN
from climate.settings import Settings
from climate.store.engine import connect
from tests.identity.identity_factory import Asker, Place, app_of, place
from tests.lock_waits import blocked_or_over

NOW = 1_900_000_000.25
LIFE = 3600
GRANT = Grant("u", "marie", ("password",), NOW, NOW + LIFE, "p", "physics", ("member",))


@pytest.fixture
def keys(tmp_path: Path) -> KeyRing:
    return KeyRing(tmp_path / "keys")


def test_what_is_sealed_is_unsealed(keys: KeyRing) -> None:
    assert unseal(keys, seal(keys, GRANT), NOW + 1, LIFE) == GRANT


def test_a_token_ends_with_its_life(keys: KeyRing) -> None:
    token = seal(keys, GRANT)
    unseal(keys, token, NOW + LIFE - 0.01, LIFE)
    with pytest.raises(NotAuthenticated):
        unseal(keys, token, NOW + LIFE, LIFE)


def test_a_shorter_life_holds_for_tokens_that_were_given_before(keys: KeyRing) -> None:
    with pytest.raises(NotAuthenticated):
        unseal(keys, seal(keys, GRANT), NOW + 120, 60)


def test_a_cached_grant_ends_as_one_that_is_decrypted(keys: KeyRing) -> None:
    cache, token = GrantCache(), seal(keys, GRANT)
    assert unseal(keys, token, NOW, LIFE, cache) is unseal(keys, token, NOW + 1, LIFE, cache)
    for now, life in ((NOW + LIFE, LIFE), (NOW + 120, 60)):
        with pytest.raises(NotAuthenticated):
            unseal(keys, token, now, life, cache)


def test_a_cached_grant_is_gone_with_the_key_of_its_token(keys: KeyRing) -> None:
    cache, old = GrantCache(), seal(keys, GRANT)
    unseal(keys, old, NOW, LIFE, cache)
    for _ in range(KEPT):
        keys.rotate()
    with pytest.raises(NotAuthenticated):
        unseal(keys, old, NOW, LIFE, cache)


def test_a_cache_keeps_the_grants_that_were_used_lately(keys: KeyRing) -> None:
    cache, fernet = GrantCache(), keys.fernet()
    for number in range(MOST_CACHED):
        cache.keep(fernet, str(number), GRANT)
    assert cache.recall(fernet, "0") is GRANT
    cache.keep(fernet, "another", GRANT)
    assert (cache.recall(fernet, "0"), cache.recall(fernet, "1")) == (GRANT, None)


@given(st.data())
def test_no_changed_token_is_believed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    keys = KeyRing(tmp_path_factory.getbasetemp() / "shared-keys")
    token = seal(keys, GRANT)
    at = data.draw(st.integers(0, len(token) - 2))
    other = data.draw(st.characters(min_codepoint=1, max_codepoint=0x10FFFF, exclude_categories=("Cs",)))
    changed = token[:at] + other + token[at + 1 :]
    if changed != token:
        with pytest.raises(NotAuthenticated):
            unseal(keys, changed, NOW, LIFE)


@pytest.mark.parametrize("token", ["", "x", "gAAAAA", "é", "\ud800", "0" * 5000, "notused", "a,b"])
def test_garbage_is_refused_in_the_same_words(keys: KeyRing, token: str) -> None:
    with pytest.raises(NotAuthenticated) as refusal:
        unseal(keys, token, NOW, LIFE)
    assert str(refusal.value) == NotAuthenticated.__doc__


def test_a_token_of_another_deployment_is_refused(keys: KeyRing, tmp_path: Path) -> None:
    with pytest.raises(NotAuthenticated):
        unseal(keys, seal(KeyRing(tmp_path / "others"), GRANT), NOW, LIFE)


def test_a_new_key_seals_and_the_old_ones_still_open_until_they_are_gone(tmp_path: Path) -> None:
    mine, theirs = KeyRing(tmp_path / "keys"), KeyRing(tmp_path / "keys")
    old = seal(mine, GRANT)
    unseal(theirs, old, NOW, LIFE)
    for _ in range(KEPT - 1):
        mine.rotate()
        assert unseal(theirs, seal(mine, GRANT), NOW, LIFE) == GRANT  # at once, in every process
        assert unseal(theirs, old, NOW, LIFE) == GRANT
    mine.rotate()
    with pytest.raises(NotAuthenticated):
        unseal(mine, old, NOW, LIFE)


def test_a_key_that_was_taken_away_is_noticed_within_a_second(tmp_path: Path) -> None:
    at = [0.0]
    mine, theirs = KeyRing(tmp_path / "keys"), KeyRing(tmp_path / "keys", clock=lambda: at[0])
    old = seal(mine, GRANT)
    unseal(theirs, old, NOW, LIFE)
    for _ in range(KEPT):
        mine.rotate()
    at[0] += 1.0
    with pytest.raises(NotAuthenticated):
        unseal(theirs, old, NOW, LIFE)


def test_keys_are_private_files_in_a_private_folder(keys: KeyRing, tmp_path: Path) -> None:
    keys.rotate()
    folder = tmp_path / "keys"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
    assert all(Fernet(file.read_bytes()) for file in folder.iterdir())


def asks(asker: Asker) -> int:
    return asker.ask("GET", "/identity/v3/auth/projects").status_code


def test_an_expired_token_is_401(scratch: str, tmp_path: Path) -> None:
    with place(scratch, tmp_path, Settings(home=tmp_path, token_seconds=1)) as here:
        asker = Asker(app_of(here))
        asker.sign_in("demo", here.password("demo"))
        with here.identity.engine.connect() as conn:
            conn.exec_driver_sql("SELECT pg_sleep(1.1)")
        assert asks(asker) == 401


def test_a_token_that_was_given_back_is_refused_everywhere_within_a_second(here: Place, demo: Asker) -> None:
    at = [0.0]
    other = replace(here.identity, watch=Watch(here.identity.engine, clock=lambda: at[0]))
    headers = {"X-Auth-Token": demo.token}
    other.authenticate(headers)
    assert demo.ask("DELETE", "/identity/v3/auth/tokens", headers={"X-Subject-Token": demo.token}).status_code == 204
    assert asks(demo) == 401
    at[0] += 1.0
    with pytest.raises(NotAuthenticated):
        other.authenticate(headers)


def test_only_what_was_revoked_since_the_last_look_is_read(here: Place) -> None:
    engine = here.identity.engine
    with engine.begin() as conn:
        for number in range(50):
            here.identity.revoke(conn, TOKEN, f"old-{number}")
    with engine.connect() as late, late.begin():
        here.identity.revoke(late, TOKEN, "late")
        with engine.begin() as conn:
            here.identity.revoke(conn, TOKEN, "later and done before")
        with engine.begin() as conn:
            first = revocations.read(conn)
        with engine.begin() as conn:
            here.identity.revoke(conn, TOKEN, "new")
        late.commit()
        with engine.begin() as conn:
            second = revocations.read(conn, first.seen)
    assert len(first.revocations) == 51
    assert {one.key[1] for one in second.revocations} == {"late", "new"}


def test_a_watch_forgets_nothing_that_is_in_force_and_keeps_nothing_else(here: Place) -> None:
    at, engine = [0.0], here.identity.engine
    watch = Watch(engine, clock=lambda: at[0])
    refused = {}
    for step, (subject, life) in enumerate((("first", 600.0), ("short", -1.0), ("second", 600.0))):
        with engine.begin() as conn:
            revocations.add(conn, TOKEN, subject, life)
        at[0] += 1.0 if step < 2 else TIDY
        watch.now()
        for name in ("first", "short", "second"):
            try:
                watch.check(replace(GRANT, audit_ids=(name,)))
                refused[step, name] = False
            except NotAuthenticated:
                refused[step, name] = True
    assert watch._view is not None
    assert ([one.key[1] for one in watch._view.reading.revocations], len(watch._view.revoked)) == (["second"], 2)
    assert {key for key, value in refused.items() if value} == {(0, "first"), (1, "first"), (2, "first"), (2, "second")}


def test_revocations_of_an_older_copy_of_the_database_are_read_anew(here: Place) -> None:
    at, engine = [0.0], here.identity.engine
    watch = Watch(engine, clock=lambda: at[0])
    with engine.begin() as conn:
        here.identity.revoke(conn, TOKEN, "x")
    ahead = revocations.Reading(datetime.now(UTC), "9000000000:9000000000:", 9_000_000_000, ())
    watch._view = View(0.0, ahead, {}, 0.0, watch._asked, 0)
    at[0] = 1.0
    with pytest.raises(NotAuthenticated):
        watch.check(replace(GRANT, audit_ids=("x",)))


def test_who_gives_very_many_tokens_back_loses_all_of_his(here: Place, demo: Asker, admin: Asker) -> None:
    uid = here.identity.authenticate({"X-Auth-Token": demo.token}).user_id
    with here.identity.engine.begin() as conn:
        for number in range(revocations.MOST_OF_A_USER):
            here.identity.revoke(conn, TOKEN, f"{number}", uid)
    other = Asker(app_of(here))
    other.sign_in("demo", here.password("demo"))
    assert asks(other) == 200
    assert demo.ask("DELETE", "/identity/v3/auth/tokens", headers={"X-Subject-Token": demo.token}).status_code == 204
    assert (asks(demo), asks(other), asks(admin)) == (401, 401, 200)
    with here.identity.engine.connect() as conn:
        assert conn.execute(text("SELECT count(*) FROM identity_revocations")).scalar_one() == 1


def test_a_token_created_from_one_that_was_given_back_is_refused_too(here: Place, demo: Asker) -> None:
    body = {"auth": {"identity": {"methods": ["token"], "token": {"id": demo.token}}}}
    second = demo.ask("POST", "/identity/v3/auth/tokens", json=body)
    child = Asker(app_of(here), second.headers["X-Subject-Token"])
    assert asks(child) == 200
    demo.ask("DELETE", "/identity/v3/auth/tokens", headers={"X-Subject-Token": demo.token})
    assert asks(child) == 401


def test_a_token_is_not_exchanged_past_a_change_that_this_process_has_not_looked_at(here: Place) -> None:
    other, now = here.identity, [0.0]
    behind = replace(other, watch=Watch(other.engine, clock=lambda: now[0]))
    old = sign_in.by_password(other, NameOrId(name="demo"), here.password("demo"), None, "192.0.2.1")
    behind.watch.check(old)
    directory.change_user(other, SETUP, old.user_id, {"password": "another-password"})
    behind.watch.check(old)
    with pytest.raises(NotAuthenticated):
        sign_in.by_token(behind, old, None)


def test_what_was_known_is_not_fresh_while_a_new_look_is_under_way(here: Place) -> None:
    seen: list[bool] = []

    def clock() -> float:
        if armed.is_set():
            armed.clear()
            assert watch._view is not None
            seen.append(watch._is_fresh(watch._view))
        return 0.0

    armed, watch = Event(), Watch(here.identity.engine, clock=clock)
    watch.check(GRANT)
    watch.forget()
    armed.set()
    watch.check(GRANT)
    assert seen == [False]


def test_a_token_exchanged_very_often_ends_with_the_first_one(here: Place) -> None:
    first = last = sign_in.by_password(here.identity, NameOrId(name="demo"), here.password("demo"), None, "192.0.2.1")
    for _ in range(12):
        last = sign_in.by_token(here.identity, last, None)
    assert len(last.audit_ids) == len(set(last.audit_ids)) == 9
    with here.identity.engine.begin() as conn:
        here.identity.revoke(conn, TOKEN, first.audit_ids[0], first.user_id)
    here.identity.watch.forget()
    with pytest.raises(NotAuthenticated):
        here.identity.watch.check(last)


def test_tokens_end_when_what_they_say_ends(here: Place, admin: Asker) -> None:
    users = "/identity/v3/users"
    uid = admin.ask("GET", f"{users}?name=demo").json["users"][0]["id"]
    pid = admin.ask("GET", "/identity/v3/projects?name=demo").json["projects"][0]["id"]
    changes = [
        ("PATCH", f"{users}/{uid}", {"user": {"password": "another-password"}}),
        ("PUT", f"/identity/v3/projects/{pid}/users/{uid}/roles/reader", None),
        ("DELETE", f"/identity/v3/projects/{pid}/users/{uid}/roles/reader", None),
        ("PATCH", f"/identity/v3/projects/{pid}", {"project": {"enabled": False}}),
        ("PATCH", f"/identity/v3/projects/{pid}", {"project": {"enabled": True}}),
        ("PATCH", f"{users}/{uid}", {"user": {"enabled": False}}),
        ("PATCH", f"{users}/{uid}", {"user": {"enabled": True}}),
        ("DELETE", f"{users}/{uid}", None),
    ]
    password, seen = here.password("demo"), []
    for method, path, body in changes:
        asker = Asker(app_of(here))
        asker.sign_in("demo", password)
        assert admin.ask(method, path, json=body).status_code < 300
        password = "another-password"
        seen.append((asks(asker) if asker.token else None, Asker(app_of(here)).sign_in("demo", password).status_code))
    assert seen == [
        (401, 201),  # another password
        (200, 201),  # one role more
        (401, 201),  # one role less
        (401, 201),  # project disabled: whoever signs in has no project
        (200, 201),
        (401, 401),  # user disabled
        (None, 201),
        (401, 401),  # user deleted
    ]


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE identity_users SET enabled = false WHERE name = 'demo'",
        "UPDATE identity_projects SET enabled = false WHERE name = 'demo'",
    ],
)
def test_who_signs_in_while_a_change_is_under_way_does_not_get_past_it(here: Place, change: str) -> None:
    asker = Asker(app_of(here))
    signing_in = Thread(target=asker.sign_in, args=("demo", here.password("demo"), "demo"))
    with here.identity.engine.begin() as conn:
        conn.execute(text(change))
        kind = "user" if "users" in change else "project"
        subject = conn.execute(text(f"SELECT id FROM identity_{kind}s WHERE name = 'demo'")).scalar_one()
        here.identity.revoke(conn, kind, subject)
        signing_in.start()
        blocked_or_over(here.identity.engine, lambda: not signing_in.is_alive())
    signing_in.join()
    here.identity.watch.forget()
    assert not asker.token or asks(asker) == 401


def test_a_known_token_costs_no_statement(here: Place, demo: Asker) -> None:
    headers = {"X-Auth-Token": demo.token}
    still = Watch(here.identity.engine, clock=lambda: 0.0)
    replace(here.identity, watch=still).authenticate(headers)
    blind = replace(here.identity, watch=still, engine=connect("postgresql:///nowhere?host=/nonexistent"))
    assert {blind.authenticate(headers).user_name for _ in range(100)} == {"demo"}


def test_basic_pays_for_argon2_once_and_forgets_at_a_change(here: Place, admin: Asker) -> None:
    def basic(password: str) -> dict[str, str]:
        return {"Authorization": "Basic " + b64encode(f"demo:{password}".encode()).decode()}

    first, memory = here.password("demo"), here.identity.memory
    assert here.identity.authenticate(basic(first)).project_name == "demo"
    assert memory.recall("demo", first) is not None
    assert memory.recall("demo", "wrong") is None
    uid = here.identity.authenticate(basic(first)).user_id
    admin.ask("PATCH", f"/identity/v3/users/{uid}", json={"user": {"password": "another-password"}})
    with pytest.raises(NotAuthenticated):
        here.identity.authenticate(basic(first))
    assert here.identity.authenticate(basic("another-password")).user_id == uid
