"""A browser without JavaScript: it keeps cookies, reads forms, and sends them back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from api.web import sessions

HTML = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
ORIGIN = "http://localhost"


@dataclass
class Form:
    """A form of a page: where it goes, and what it sends when nobody changes it."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict)


class Forms(HTMLParser):
    """Collects the forms of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._select = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(known.get("action", ""), known.get("method", "get").lower()))
        elif not self.forms:
            return
        elif tag in ("input", "textarea") and "name" in known:
            if known.get("type") not in ("checkbox", "radio") or "checked" in known:
                self.forms[-1].fields[known["name"]] = known.get("value", "")
        elif tag == "select":
            self._select = known.get("name", "")
        elif tag == "option" and self._select and ("selected" in known or self._select not in self.forms[-1].fields):
            self.forms[-1].fields[self._select] = known.get("value", "")


def forms_of(answer: TestResponse) -> list[Form]:
    parser = Forms()
    parser.feed(answer.get_data(as_text=True))
    return parser.forms


class Browser:
    """A browser with cookies of its own."""

    def __init__(self, app: Flask) -> None:
        self.app = app
        self.client: FlaskClient = app.test_client()

    def get(self, path: str, status: int = 200, **sent: Any) -> TestResponse:
        answer = self.client.get(path, headers={"Accept": HTML, **sent.pop("headers", {})}, **sent)
        assert answer.status_code == status, answer.get_data(as_text=True)[:2000]
        return answer

    def text(self, path: str, status: int = 200) -> str:
        return self.get(path, status).get_data(as_text=True)

    def post(self, path: str, data: Mapping[str, Any] | None = None, **headers: str) -> TestResponse:
        """Send fields as they are, without the secret of a form."""
        sent = {"Accept": HTML, "Origin": ORIGIN, **{name.replace("_", "-"): value for name, value in headers.items()}}
        return self.client.post(path, data=data or {}, headers=sent)

    def form(self, path: str, action: str) -> Form:
        """Return the first form of a page that goes to `action`."""
        found = [one for one in forms_of(self.get(path)) if one.action == action]
        assert found, f"{path} has no form for {action}"
        return found[0]

    def submit(self, path: str, action: str, **values: str) -> TestResponse:
        """Fill in a form of a page, and send it."""
        form = self.form(path, action)
        return self.post(action, {**form.fields, **values})

    def sign_in(self, user: str, password: str, **values: str) -> TestResponse:
        return self.submit("/ui/sign-in", "/ui/sign-in", user=user, password=password, **values)

    def cookie(self) -> str:
        found = self.client.get_cookie(sessions.COOKIE)
        return found.value if found else ""


def signed_in(app: Flask, token: str) -> Browser:
    """A browser with a session of this token, as a sign-in leaves it."""
    browser = Browser(app)
    text = app.session_interface.get_signing_serializer(app).dumps({sessions.TOKEN: token, sessions.CSRF: "secret"})  # type: ignore[attr-defined]
    browser.client.set_cookie(sessions.COOKIE, text, path="/")
    return browser
