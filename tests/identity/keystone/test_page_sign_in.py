"""Sign-in of web pages by Keystone's passwords: tokens, projects, sign-out, and the limit of attempts."""

import pytest
from sqlalchemy import Engine

from climate.domain.errors import NotAuthenticated, TooManyAttempts, Unavailable
from climate.identity import build
from climate.identity.authentication import page_sign_in
from climate.identity.authentication.sign_in import PER_LOGIN
from climate.identity.context import Identity
from climate.identity.keystone.service import KeystoneIdentity
from climate.identity.store.tables import metadata
from climate.settings import Settings
from tests.databases import create_tables
from tests.identity.keystone.fake_keystone import ALPHA, PASSWORD, FakeKeystone, body

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code

HERE = "192.0.2.1"
OWN = body("valid")["token"]["project"]


@pytest.fixture
def people(engine: Engine, settings: Settings, identity: KeystoneIdentity) -> Identity:
    create_tables(engine.url, metadata)
    return build(engine, settings, external=identity)


@pytest.mark.parametrize("name", ["alpha", "alpha@Default"])
def test_password_gives_a_token_for_the_first_project(people: Identity, name: str) -> None:
    token = page_sign_in.token(people, name, PASSWORD, HERE)
    assert token == ALPHA
    assert people.authenticate({"X-Auth-Token": token}).project_id == OWN["id"]
    assert [one.id for one in page_sign_in.projects(people, token)] == [OWN["id"]]
    assert page_sign_in.for_project(people, token, OWN["id"]) == ALPHA
    with pytest.raises(NotAuthenticated):
        page_sign_in.for_project(people, token, "another")


def test_sign_out_revokes_the_token_at_once(people: Identity, fake: FakeKeystone) -> None:
    token = page_sign_in.token(people, "alpha", PASSWORD, HERE)
    people.authenticate({"X-Auth-Token": token})
    page_sign_in.sign_out(people, token)
    assert fake.revoked == {ALPHA}
    with pytest.raises(NotAuthenticated):
        people.authenticate({"X-Auth-Token": token})


def test_wrong_passwords_are_counted_and_then_not_sent(people: Identity, fake: FakeKeystone) -> None:
    for _ in range(PER_LOGIN):
        with pytest.raises(NotAuthenticated):
            page_sign_in.token(people, "alpha", "guess", HERE)
    sent = fake.log.count("POST /v3/auth/tokens")
    with pytest.raises(TooManyAttempts):
        page_sign_in.token(people, "alpha", PASSWORD, HERE)
    assert fake.log.count("POST /v3/auth/tokens") == sent
    assert page_sign_in.token(people, "alpha", PASSWORD, "192.0.2.2") == ALPHA


def test_silent_keystone_is_no_wrong_password(people: Identity, fake: FakeKeystone) -> None:
    fake.status = 500
    for _ in range(PER_LOGIN + 1):
        with pytest.raises(Unavailable):
            page_sign_in.token(people, "alpha", PASSWORD, HERE)
