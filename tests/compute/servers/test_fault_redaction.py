"""What an owner reads of a failure names neither node nor service host."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from climate.compute.models.server import Server
from climate.compute.servers.fault_redaction import readable
from tests.compute.cloud_factory import TINY

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SERVER = Server("i", "s", "demo", "dora", "BUILD", None, TINY, None, {}, {}, None, "r-1", 0, NOW, NOW)


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("node n1 is full.", "node (its host) is full."),
        ("n1: no route to rack-1.example", "(its host): no route to (its host)"),
        ("n1, (n1) and n10, an1, n1-b", "(its host), ((its host)) and n10, an1, n1-b"),
        ("RACK-1.EXAMPLE: N1", "(its host): (its host)"),
        ("no more disk", "no more disk"),
    ],
)
def test_names_are_left_out_and_nothing_else_is(reason: str, told: str) -> None:
    assert readable(replace(SERVER, node="n1", service_host="rack-1.example"), reason) == told
    assert readable(SERVER, reason) == reason
