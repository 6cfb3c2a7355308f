"""A Keystone that gives the answers that a real one gave: `python -m tests.real_keystone.record_keystone`."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import yaml
from flask import Flask, Response, request

from tests.identity.identity_factory import served

RECORDED = Path(__file__).parent / "recorded"
HERE = "http://keystone.example:5000"
PASSWORD = "open-sesame"


@cache
def recorded(name: str) -> dict[str, Any]:
    """Return a recorded answer."""
    return dict(json.loads((RECORDED / f"{name}.json").read_text()))


def body(name: str) -> dict[str, Any]:
    """Return the body of a recorded answer."""
    return dict(json.loads(recorded(name)["body"]))


OWN, ALPHA = (recorded(name)["headers"]["X-Subject-Token"] for name in ("signed-in", "valid"))
"""Tokens of climate's own user, and of the user alpha."""

LATE = recorded("expired-allowed")["headers"]["X-Subject-Token"]
"""Token of alpha that is expired."""

LATER = "2199-01-01T00:00:00.000000Z"


@dataclass
class FakeKeystone:
    """Its state, open to tests."""

    port: int = 0
    revoked: set[str] = field(default_factory=set)
    status: int = 0
    """Status of each answer instead of the right one; 0: none."""
    text: str | None = None
    """Body of each validation instead of the right one."""
    answering: Event = field(default_factory=Event)
    """Cleared while requests wait for their answers."""
    closing: int = 0
    """Number of further requests at which it closes the connection instead of an answer."""
    log: list[str] = field(default_factory=list)
    services: dict[str, str] = field(default_factory=dict)
    """Maps a type to the URL of a service that the catalog has beside the recorded ones."""
    more: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Bodies of further tokens, which were not recorded."""

    def __post_init__(self) -> None:
        self.answering.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v3"

    def validations(self) -> int:
        return self.log.count("GET /v3/auth/tokens")

    def cloud(self, folder: Path, password: str = PASSWORD) -> str:
        """Write a clouds.yaml with the entry `keystone`, and return its path."""
        auth = {"auth_url": self.url, "username": "climate", "password": password, "project_name": "service"}
        auth |= {"user_domain_id": "default", "project_domain_id": "default"}
        path = folder / "keystone-clouds.yaml"
        path.write_text(yaml.safe_dump({"clouds": {"keystone": {"auth": auth}}}))
        return str(path)


def _shown(fake: FakeKeystone, name: str) -> Response:
    one = recorded(name)
    here = f"http://127.0.0.1:{fake.port}"
    headers = {key: value.replace(HERE, here) for key, value in one["headers"].items()}
    return Response(one["body"].replace(HERE, here), one["status"], headers)


def _validated(fake: FakeKeystone) -> Response:
    subject = request.headers.get("X-Subject-Token", "")
    if request.headers.get("X-Auth-Token") != OWN or OWN in fake.revoked:
        return _shown(fake, "own-token-refused")
    if subject in fake.revoked:
        return _shown(fake, "revoked")
    if fake.text is not None:
        return Response(fake.text, 200, content_type="application/json")
    if subject in fake.more:
        return Response(json.dumps(fake.more[subject]), 200, content_type="application/json")
    if subject == LATE:
        return _shown(fake, "expired-allowed" if request.args.get("allow_expired") == "1" else "expired")
    return _shown(fake, {ALPHA: "valid", OWN: "valid-service"}.get(subject, "unknown"))


def _signed_in(fake: FakeKeystone) -> Response:
    identity = request.get_json()["auth"]["identity"]
    if identity["methods"] == ["token"]:
        return _exchanged(fake, request.get_json()["auth"])
    sent = identity["password"]["user"]
    if (sent["name"], sent["password"], sent["domain"].get("name")) == ("alpha", PASSWORD, "Default"):
        return Response("{}", 201, {"X-Subject-Token": ALPHA})
    right = sent["name"] == "climate" and sent["password"] == PASSWORD
    if not right:
        return _shown(fake, "wrong-password")
    shown = _shown(fake, "signed-in")
    # Clients renew a token that expires soon, and the recorded one did.
    shown.set_data(shown.get_data(as_text=True).replace(body("signed-in")["token"]["expires_at"], LATER))
    return shown


def _exchanged(fake: FakeKeystone, auth: dict[str, Any]) -> Response:
    """Give the one token of alpha for its project again, and none for another."""
    known = auth["identity"]["token"]["id"] == ALPHA and ALPHA not in fake.revoked
    if not known or auth["scope"]["project"]["id"] != body("valid")["token"]["project"]["id"]:
        return _shown(fake, "wrong-password")
    return Response("{}", 201, {"X-Subject-Token": ALPHA})


def _projects(fake: FakeKeystone) -> Response:
    if request.headers.get("X-Auth-Token") != ALPHA or ALPHA in fake.revoked:
        return _shown(fake, "own-token-refused")
    own = body("valid")["token"]["project"]
    listed = [{**own, "enabled": True}, {"id": "closed", "name": "closed", "enabled": False}]
    return Response(json.dumps({"projects": listed}), 200, content_type="application/json")


def _revoked(fake: FakeKeystone) -> Response:
    fake.revoked.add(request.headers["X-Subject-Token"])
    return Response("", 204)


def _catalog(fake: FakeKeystone) -> Response:
    shown = _shown(fake, "catalog")
    known = json.loads(shown.get_data())
    for kind, url in fake.services.items():
        known["catalog"].append({"type": kind, "name": kind, "endpoints": [{"interface": "public", "url": url}]})
    shown.set_data(json.dumps(known))
    return shown


def app_of(fake: FakeKeystone) -> Flask:
    app = Flask("keystone")

    @app.before_request
    def _before() -> Response | None:
        fake.log.append(f"{request.method} {request.path}")
        fake.answering.wait()
        if fake.closing:
            fake.closing -= 1
            request.environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return Response("", fake.status) if fake.status else None

    app.add_url_rule("/v3", "version", lambda: _shown(fake, "version"))
    app.add_url_rule("/v3/auth/tokens", "issue", lambda: _signed_in(fake), methods=["POST"])
    app.add_url_rule("/v3/auth/tokens", "show", lambda: _validated(fake), methods=["GET"])
    app.add_url_rule("/v3/auth/tokens", "revoke", lambda: _revoked(fake), methods=["DELETE"])
    app.add_url_rule("/v3/auth/projects", "projects", lambda: _projects(fake))
    app.add_url_rule("/v3/auth/catalog", "catalog", lambda: _catalog(fake))
    return app


@contextmanager
def running() -> Iterator[FakeKeystone]:
    """A fake Keystone on a loopback port."""
    fake = FakeKeystone()
    with served(app_of(fake)) as port:
        fake.port = port
        try:
            yield fake
        finally:
            fake.answering.set()
