"""Settings of a user: time zone, colours, mail, feeds, application credentials."""

import re
from collections.abc import Callable

import pytest

from climate.context import Climate
from tests.api.web.page_clients import Browser, forms_of
from tests.identity.identity_factory import Asker

Visit = Callable[[str], Browser]
SETTINGS = "/ui/settings"


def test_chosen_zone_writes_times_and_reads_forms(climate: Climate, member: Browser) -> None:
    sent = {"csrf_token": "secret", "next": SETTINGS}
    assert member.post("/ui/zone", {**sent, "zone": "Asia/Kolkata"}).location == SETTINGS
    text = member.text("/ui/find?hosts=1&earliest=2030-01-03T05:30")
    assert 'datetime="2030-01-03T00:00:00Z" data-zone="Asia/Kolkata"' in text
    assert "Thu 03 Jan 2030 05:30" in text
    assert "Not before (Asia/Kolkata)" in text
    member.post("/ui/zone", {**sent, "zone": ""})
    assert "Not before (UTC)" in member.text("/ui/find")


@pytest.mark.parametrize(("path", "data"), [("/ui/zone", {"zone": "Mars/Olympus"}), ("/ui/theme", {"theme": "pink"})])
def test_unknown_preferences_are_refused(member: Browser, path: str, data: dict[str, str]) -> None:
    assert member.post(path, {"csrf_token": "secret", **data}).status_code == 400


def test_colours_are_kept(member: Browser) -> None:
    assert 'data-theme="system"' in member.text("/ui/")
    assert member.submit("/ui/leases", "/ui/theme", theme="dark").location == "/ui/leases"
    assert 'data-theme="dark"' in member.text("/ui/")


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example/ui/", "/ui//evil", "/ui/\\evil", "/v1/leases"]
)
def test_forms_return_to_pages_only(member: Browser, target: str) -> None:
    answer = member.post("/ui/theme", {"csrf_token": "secret", "theme": "dark", "next": target})
    assert answer.location == "/ui/"


def test_mail_topics_are_kept(visit: Visit) -> None:
    browser = visit("demo")
    form = browser.form(SETTINGS, "/ui/settings/mail")
    assert browser.post("/ui/settings/mail", {**form.fields, "topic": ["start", "ended"]}).status_code == 303
    assert re.findall(r'value="(\w+)" checked', browser.text(SETTINGS)) == ["start", "ended"]
    assert browser.post("/ui/settings/mail", {**form.fields, "topic": "<script>"}).status_code == 400


def test_feed_is_created_read_and_revoked(visit: Visit) -> None:
    browser = visit("demo")
    answer = browser.submit(SETTINGS, "/ui/settings/feeds", name="<b>mine</b>", scope="user")
    text = answer.get_data(as_text=True)
    assert "&lt;b&gt;mine" in text
    (path,) = re.findall(r"(/reservation/v1/calendar/[\w-]+\.ics)", text)
    assert browser.client.get(path).status_code == 200
    assert path not in browser.text(SETTINGS)
    form = next(one for one in forms_of(browser.get(SETTINGS)) if one.action.endswith("/delete"))
    assert browser.post(form.action, form.fields).status_code == 303
    assert browser.client.get(path).status_code == 404


def test_credential_is_created_used_and_deleted(visit: Visit) -> None:
    browser = visit("demo")
    text = browser.submit(SETTINGS, "/ui/settings/credentials", name="<i>ci</i>").get_data(as_text=True)
    secret = re.findall(r'aria-label="Secret" data-copy><code>([^<]+)<', text)[0]
    number = re.findall(r"Id: <code>(\w+)<", text)[0]
    proof = {"methods": ["application_credential"], "application_credential": {"id": number, "secret": secret}}
    asker = Asker(browser.app)
    assert asker.ask("POST", "/identity/v3/auth/tokens", json={"auth": {"identity": proof}}).status_code == 201
    text = browser.text(SETTINGS)
    assert secret not in text
    assert "&lt;i&gt;ci" in text
    path = f"/ui/settings/credentials/{number}/delete"
    assert browser.submit(SETTINGS, path).status_code == 303
    assert asker.ask("POST", "/identity/v3/auth/tokens", json={"auth": {"identity": proof}}).status_code == 401


def test_feeds_and_credentials_of_others_are_not_found(visit: Visit) -> None:
    demo, admin = visit("demo"), visit("admin")
    text = admin.submit(SETTINGS, "/ui/settings/credentials", name="other").get_data(as_text=True)
    number = re.findall(r"Id: <code>(\w+)<", text)[0]
    secret = demo.form(SETTINGS, "/ui/zone").fields
    assert demo.post(f"/ui/settings/credentials/{number}/delete", secret).status_code == 404
    for feed in ("x", "00000000-0000-0000-0000-000000000000"):
        assert demo.post(f"/ui/settings/feeds/{feed}/delete", secret).status_code == 404


def test_token_is_issued_and_ends_with_the_session(visit: Visit) -> None:
    browser = visit("demo")
    text = browser.submit(SETTINGS, "/ui/settings/tokens").get_data(as_text=True)
    token = re.findall(r'aria-label="Token" data-copy><code>([^<]+)<', text)[0]
    asker = Asker(browser.app)
    own = {"X-Auth-Token": token, "X-Subject-Token": token}
    assert asker.ask("GET", "/identity/v3/auth/tokens", headers=own).status_code == 200
    assert token not in browser.text(SETTINGS)
    browser.submit("/ui/", "/ui/sign-out")
    assert asker.ask("GET", "/identity/v3/auth/tokens", headers=own).status_code == 401


def test_sign_out_everywhere_ends_all_sessions_and_tokens_of_the_user_alone(visit: Visit) -> None:
    browser, other, admin = visit("demo"), visit("demo"), visit("admin")
    answer = browser.submit(SETTINGS, "/ui/settings/sign-out-everywhere")
    assert (answer.status_code, answer.location) == (303, "/ui/sign-in")
    browser.get(SETTINGS, 303)
    other.get(SETTINGS, 303)
    admin.get(SETTINGS)
