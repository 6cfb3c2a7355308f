"""Requests to Keystone: every way to fail is a sentence, and none is a failure of climate."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from climate.domain.errors import NotAuthenticated, Unavailable
from climate.identity.keystone.connection import connect, entry_of, versioned
from climate.settings import SettingError, Settings
from tests.identity.keystone.fake_keystone import ALPHA, OWN, FakeKeystone

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code


def test_the_own_token_is_requested_once(settings: Settings, fake: FakeKeystone) -> None:
    there = connect(settings)
    assert fake.log == []
    for _ in range(3):
        assert there.validate(ALPHA)["user"]["name"] == "alpha"
    assert (fake.log.count("POST /v3/auth/tokens"), fake.validations()) == (1, 3)
    assert there.own_token() == OWN


def test_a_refused_own_token_is_requested_again_and_then_unavailable(settings: Settings, fake: FakeKeystone) -> None:
    there = connect(settings)
    there.validate(ALPHA)
    fake.revoked.add(OWN)
    with pytest.raises(Unavailable, match="refused climate's own credentials"):
        there.validate(ALPHA)
    assert fake.log.count("POST /v3/auth/tokens") == 2
    fake.revoked.clear()
    assert there.validate(ALPHA)["user"]["name"] == "alpha"


def test_a_wrong_password_is_unavailable(settings: Settings, fake: FakeKeystone, tmp_path: Path) -> None:
    there = connect(replace(settings, keystone_config=fake.cloud(tmp_path, "wrong-one")))
    for ask in (lambda: there.validate(ALPHA), there.own_token):
        with pytest.raises(Unavailable, match="refused climate's own credentials") as caught:
            ask()
        assert "wrong-one" not in str(caught.value)


@pytest.mark.parametrize("status", [500, 502, 503, 429])
def test_errors_of_keystone_are_unavailable(settings: Settings, fake: FakeKeystone, status: int) -> None:
    there = connect(settings)
    there.validate(ALPHA)
    fake.status = status
    with pytest.raises(Unavailable, match="did not answer"):
        there.validate(ALPHA)
    fake.status = 0
    assert there.validate(ALPHA)


def test_a_keystone_that_hangs_is_unavailable_after_the_timeout(settings: Settings, fake: FakeKeystone) -> None:
    there = connect(replace(settings, keystone_seconds=0.2))
    fake.answering.clear()
    with pytest.raises(Unavailable, match="did not answer"):
        there.validate(ALPHA)
    before = len(fake.log)
    with pytest.raises(Unavailable, match="does not answer at present"):
        there.validate(ALPHA)
    assert len(fake.log) == before


def test_a_read_is_repeated_once_after_a_closed_connection(settings: Settings, fake: FakeKeystone) -> None:
    there = connect(settings)
    there.validate(ALPHA)
    fake.closing = 1
    assert there.validate(ALPHA)["user"]["name"] == "alpha"
    assert fake.validations() == 3
    fake.closing = 2
    with pytest.raises(Unavailable, match="did not answer"):
        there.validate(ALPHA)
    assert fake.validations() == 5


def test_a_request_that_changes_something_is_not_repeated(settings: Settings, fake: FakeKeystone) -> None:
    there = connect(settings)
    fake.closing = 1
    with pytest.raises(Unavailable, match="did not answer"):
        there.revoke(ALPHA)
    assert fake.log.count("DELETE /v3/auth/tokens") == 1


def test_nobody_listens(tmp_path: Path, settings: Settings) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        path = FakeKeystone(port=closed.getsockname()[1]).cloud(tmp_path)
        there = connect(replace(settings, keystone_config=path))
        with pytest.raises(Unavailable, match="did not answer"):
            there.validate(ALPHA)


def test_an_unknown_token_is_not_authenticated(settings: Settings) -> None:
    with pytest.raises(NotAuthenticated):
        connect(settings).validate("nonsense")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"keystone_cloud": ""}, "needs CLIMATE_KEYSTONE_CLOUD"),
        ({"keystone_cloud": "other"}, "'other' of .* cannot be used"),
        ({"keystone_config": "/nowhere/clouds.yaml"}, "is not a file"),
    ],
)
def test_unusable_settings_are_named(settings: Settings, changed: dict[str, str], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        connect(replace(settings, **changed))


@pytest.mark.parametrize("text", ["clouds: 1", "- a", "{", "clouds: {keystone: {auth: 1}}", "clouds: {keystone: {}}"])
def test_an_unusable_file_is_named(settings: Settings, text: str) -> None:
    Path(settings.keystone_config).write_text(text)
    with pytest.raises(SettingError, match="CLIMATE_KEYSTONE_CLOUD='keystone'"):
        connect(settings)


def test_the_entry_of_the_openstack_cloud_is_the_default() -> None:
    both = Settings(cloud="openstack", openstack_cloud="prod", openstack_config="/etc/c.yaml")
    assert entry_of(both) == ("prod", "/etc/c.yaml")
    assert entry_of(replace(both, keystone_cloud="own")) == ("own", "")
    assert entry_of(replace(both, cloud="bundled")) == ("", "")


@pytest.mark.parametrize(
    "url", ["http://k/identity", "http://k/identity/", "http://k/identity/v3", "http://k/identity/v3/"]
)
def test_an_auth_url_needs_no_version(url: str) -> None:
    assert versioned(url) == "http://k/identity/v3"
