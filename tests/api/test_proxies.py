"""Whose address a request comes from, behind reverse proxies or none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import NotAuthenticated
from climate.domain.policy import Caller
from climate.settings import Settings
from tests.api.reservation.api_clients import Deployment
from tests.flask_apps import app_of

PEER = "127.0.0.1"


@dataclass
class Witness:
    """Identity that lets nobody in, and remembers where they came from."""

    seen: list[str] = field(default_factory=list)

    def authenticate(self, headers: Mapping[str, str], address: str) -> Caller:
        self.seen.append(address)
        raise NotAuthenticated


@pytest.mark.parametrize(
    ("proxies", "forwarded", "address"),
    [
        (0, "203.0.113.7", PEER),
        (1, "203.0.113.7", "203.0.113.7"),
        (1, "198.51.100.9, 203.0.113.7", "203.0.113.7"),
        (2, "198.51.100.9, 203.0.113.7", "198.51.100.9"),
        (1, None, PEER),
    ],
)
def test_only_what_trusted_proxies_say_is_believed(
    tmp_path: Path, proxies: int, forwarded: str | None, address: str
) -> None:
    witness = Witness()
    settings = Settings(home=tmp_path, trusted_proxies=proxies)
    app = app_of(Deployment(settings, Climate(cast("Any", None), FakeCloud({}), {}), witness))
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    assert app.test_client().get("/v1/leases", headers=headers).status_code == 401
    assert witness.seen == [address]
