"""Answers to callers are private."""

import pytest
from flask import Flask

from tests.api.echo_views import APIS
from tests.identity.identity_factory import Asker


@pytest.mark.parametrize("prefix", APIS.values())
def test_no_cache_keeps_what_a_caller_was_told(demo: Asker, prefix: str) -> None:
    told = [demo.ask("POST", f"{prefix}/echo", json={}), demo.ask("GET", f"{prefix}/fail/NotFound")]
    assert [answer.headers.get("Cache-Control") for answer in told] == ["no-store"] * 2


def test_caches_may_keep_what_everybody_is_told(app: Flask) -> None:
    assert "Cache-Control" not in Asker(app).ask("GET", "/identity/v3").headers
