"""A fake Keystone, and the identity over it at the time of its recorded tokens."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from climate.domain.policy import DEFAULTS
from climate.identity import keystone
from climate.identity.keystone.service import KeystoneIdentity
from climate.identity.keystone.token_cache import TokenCache
from climate.settings import Settings
from tests.identity.keystone.fake_keystone import FakeKeystone, body, running
from tests.identity.keystone.hands import Hands


@pytest.fixture
def fake() -> Iterator[FakeKeystone]:
    with running() as there:
        yield there


@pytest.fixture
def hands() -> Hands:
    """The clocks of the cache."""
    return Hands(now=datetime.fromisoformat(body("valid")["token"]["issued_at"]).timestamp())


@pytest.fixture
def settings(fake: FakeKeystone, tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, identity="keystone", keystone_cloud="keystone", keystone_config=fake.cloud(tmp_path))


@pytest.fixture
def identity(settings: Settings, hands: Hands) -> KeystoneIdentity:
    cache = TokenCache(60.0, clock=lambda: hands.seconds, now=lambda: hands.now)
    return replace(keystone.of(settings, DEFAULTS), cache=cache)
