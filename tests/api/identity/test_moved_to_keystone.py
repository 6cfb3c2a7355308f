"""With Keystone as the identity, the bundled routes say where it is, and its refusals are climate's."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from flask import Flask

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.policy import DEFAULTS
from climate.identity import build, keystone
from climate.settings import Settings
from tests.api.reservation.api_clients import Deployment
from tests.flask_apps import app_of
from tests.identity.keystone.fake_keystone import ALPHA, OWN, FakeKeystone, running

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code


@pytest.fixture
def fake() -> Iterator[FakeKeystone]:
    with running() as there:
        yield there


@pytest.fixture
def settings(fake: FakeKeystone, tmp_path: Path) -> Settings:
    return _settings(tmp_path, fake)


def _settings(home: Path, fake: FakeKeystone) -> Settings:
    return Settings(home=home, identity="keystone", keystone_cloud="keystone", keystone_config=fake.cloud(home))


def app(settings: Settings) -> Flask:
    nothing = cast("Any", None)
    identity = build(nothing, settings, external=keystone.of(settings, DEFAULTS))
    return app_of(Deployment(settings, Climate(nothing, FakeCloud({}), {}, settings), identity))


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Flask, FakeKeystone]]:
    """An application whose identity is elsewhere, for tests that ask it nothing that Keystone hears of."""
    home = tmp_path_factory.mktemp("home")
    with running() as fake:
        yield app(_settings(home, fake)), fake


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/identity", "/identity/", "/identity/v3", "/identity/v3/auth/tokens", "/identity/x/y"]
)
def test_each_path_of_identity_answers_where_keystone_is(
    outside: tuple[Flask, FakeKeystone], method: str, path: str
) -> None:
    asked, fake = outside
    answer = asked.test_client().open(path, method=method)
    assert answer.status_code == 404
    assert fake.url in answer.get_json()["error"]["message"]
    assert fake.log == []


def test_clients_learn_the_public_url_of_keystone(settings: Settings) -> None:
    known = app(replace(settings, keystone_url="https://keystone.example.org/identity/")).test_client()
    refused = known.get("/v1/leases")
    assert refused.status_code == 401
    assert refused.headers["WWW-Authenticate"] == 'Keystone uri="https://keystone.example.org/identity/v3"'
    assert "https://keystone.example.org/identity/v3" in known.get("/identity").get_json()["error"]["message"]


def test_bundled_passwords_and_tokens_are_not_accepted(settings: Settings, fake: FakeKeystone) -> None:
    asker = app(settings).test_client()
    assert asker.get("/v1/leases", headers={"X-Auth-Token": "gAAAAnother"}).status_code == 401
    assert asker.get("/v1/leases", auth=("climate", "open-sesame")).status_code == 401


def test_roles_of_keystone_decide(settings: Settings) -> None:
    answer = app(settings).test_client().post("/v1/os-hosts", json={"name": "x"}, headers={"X-Auth-Token": ALPHA})
    assert (answer.status_code, "oshosts:post" in answer.get_data(as_text=True)) == (403, True)


def test_an_outage_is_a_503_with_a_sentence(settings: Settings, fake: FakeKeystone) -> None:
    asker = app(settings).test_client()
    for broken in ({"status": 500}, {"status": 0, "revoked": {OWN}}, {"revoked": set(), "text": "<html>"}):
        for name, value in broken.items():
            setattr(fake, name, value)
        answer = asker.get("/v1/leases", headers={"X-Auth-Token": ALPHA})
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        said = answer.get_data(as_text=True)
        assert ("Keystone" in said, ALPHA in said) == (True, False)
