"""Sessions: begun by a password, ended by the user, by time and by whatever ends its token."""

from collections.abc import Callable

import pytest
from flask import Flask
from itsdangerous import BadSignature

from api.web import sessions
from climate.identity import projects_and_users as accounts
from climate.identity.audit_trail import SETUP
from tests.api.web.page_clients import Browser
from tests.identity.identity_factory import Place

Visit = Callable[[str], Browser]


def test_a_browser_is_sent_to_the_sign_in_and_back(app: Flask, here: Place) -> None:
    browser = Browser(app)
    answer = browser.get("/ui/?x=1", 303)
    assert answer.location == "/ui/sign-in?next=/ui/%3Fx%3D1"
    form = browser.form(answer.location, "/ui/sign-in")
    assert form.fields["next"] == "/ui/?x=1"
    answer = browser.post("/ui/sign-in", {**form.fields, "user": "demo", "password": here.password("demo")})
    assert (answer.status_code, answer.location) == (303, "/ui/?x=1")
    assert "Sign out" in browser.text("/ui/")


def test_root_is_the_first_page_for_browsers_and_the_versions_for_clients(visit: Visit, app: Flask) -> None:
    assert "<h1>" in visit("demo").text("/")
    for accept in ("*/*", "application/json", ""):
        answer = app.test_client().get("/", headers={"Accept": accept} if accept else {})
        assert answer.status_code == 300
        assert answer.json["versions"][0]["id"] == "v1.0"


def test_cookie_holds_no_password_and_no_readable_token(visit: Visit, here: Place) -> None:
    cookie = visit("demo").cookie()
    assert cookie.startswith("gAAAA")
    assert here.password("demo") not in cookie


def test_cookie_is_kept_from_scripts_and_other_sites(app: Flask, here: Place) -> None:
    answer = Browser(app).sign_in("demo", here.password("demo"))
    (header,) = [one for one in answer.headers.getlist("Set-Cookie") if one.startswith("climate_session=")]
    assert "HttpOnly" in header
    assert "SameSite=Lax" in header
    assert "Path=/" in header


def test_sign_in_takes_over_nothing_of_a_planted_session(app: Flask, here: Place) -> None:
    attacker = Browser(app)
    planted = attacker.form("/ui/sign-in", "/ui/sign-in").fields["csrf_token"]
    victim = Browser(app)
    victim.client.set_cookie("climate_session", attacker.cookie(), path="/")
    victim.sign_in("demo", here.password("demo"))
    attacker.get("/ui/", 303)
    assert victim.form("/ui/", "/ui/sign-out").fields["csrf_token"] != planted


def test_sign_out_ends_a_stolen_copy_too(visit: Visit, app: Flask) -> None:
    browser, thief = visit("demo"), Browser(app)
    thief.client.set_cookie("climate_session", browser.cookie(), path="/")
    thief.get("/ui/")
    assert browser.submit("/ui/", "/ui/sign-out").status_code == 303
    content = app.session_interface.get_signing_serializer(app).loads(browser.cookie())  # type: ignore[attr-defined]
    assert not content.keys() & {sessions.TOKEN, sessions.PROJECTS}
    browser.get("/ui/", 303)
    thief.get("/ui/", 303)


def test_expired_cookie_is_worthless(visit: Visit, app: Flask) -> None:
    serializer = app.session_interface.get_signing_serializer(app)  # type: ignore[attr-defined]
    cookie = visit("demo").cookie()
    assert serializer.loads(cookie, 3600)
    with pytest.raises(BadSignature):
        serializer.loads(cookie, -1)
    assert app.permanent_session_lifetime.total_seconds() == 3600


def test_change_of_project_stays_within_the_sign_in(visit: Visit, app: Flask) -> None:
    browser, thief = visit("admin"), Browser(app)
    thief.client.set_cookie("climate_session", browser.cookie(), path="/")
    answer = browser.post("/ui/project", {**browser.form("/ui/", "/ui/sign-out").fields, "project_id": "x" * 32})
    assert answer.status_code == 400
    browser.submit("/ui/", "/ui/sign-out")
    thief.get("/ui/", 303)


def test_change_of_the_password_ends_sessions(app: Flask, here: Place) -> None:
    user = accounts.create_user(here.identity, SETUP, accounts.NewUser("changing", "first-password"))
    browser = Browser(app)
    browser.sign_in("changing", "first-password")
    browser.get("/ui/")
    accounts.change_user(here.identity, SETUP, user.id, {"password": "second-password"})
    browser.get("/ui/", 303)


def test_forged_and_broken_cookies_are_no_session(visit: Visit, app: Flask) -> None:
    cookie = visit("demo").cookie()
    changed = cookie[:20] + ("B" if cookie[20] == "A" else "A") + cookie[21:]
    for broken in ("", "x", cookie[:-4], changed, "é", "gAAAAA" * 50):
        browser = Browser(app)
        browser.client.set_cookie("climate_session", broken, path="/")
        browser.get("/ui/", 303)


def test_tokens_of_the_api_are_no_cookies_and_cookies_no_tokens(visit: Visit, app: Flask, here: Place) -> None:
    cookie = visit("demo").cookie()
    assert app.test_client().get("/v1/leases", headers={"X-Auth-Token": cookie}).status_code == 401
    browser = Browser(app)
    answer = app.test_client().get("/v1/leases", headers={"Cookie": f"climate_session={cookie}"})
    assert answer.status_code == 401
    browser.get("/ui/", 303)


def test_wrong_passwords_are_slowed_down(app: Flask) -> None:
    browser = Browser(app)
    answers = [browser.sign_in("guessed", f"wrong-{turn}").status_code for turn in range(6)]
    assert answers == [401] * 5 + [429]


def test_neither_pages_nor_logs_have_the_password_or_the_token(
    visit: Visit, app: Flask, here: Place, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    browser = visit("demo")
    content = app.session_interface.get_signing_serializer(app).loads(browser.cookie())  # type: ignore[attr-defined]
    issued = browser.submit("/ui/settings", "/ui/settings/tokens").text
    token = issued.partition('aria-label="Token" data-copy><code>')[2].partition("<")[0]
    texts = [browser.text(path) for path in ("/ui/", "/ui/settings", "/ui/leases", "/ui/calendar", "/ui/find")]
    assert token
    for secret in (content[sessions.TOKEN], here.password("demo"), token, browser.cookie()):
        assert all(secret not in text for text in texts)
        assert secret not in caplog.text
