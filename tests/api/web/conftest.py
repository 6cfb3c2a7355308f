"""Browsers before the pages: over a whole identity, or over an engine whose tokens are names."""

from collections.abc import Callable
from pathlib import Path

import pytest
from flask import Flask

from climate.context import Climate
from tests.api.reservation.api_clients import app_over
from tests.api.web.page_clients import Browser, signed_in
from tests.identity.identity_factory import Place


@pytest.fixture
def visit(app: Flask, here: Place) -> Callable[[str], Browser]:
    """Sign a user of the demo deployment in."""

    def sign_in(user: str) -> Browser:
        browser = Browser(app)
        password = here.password("admin" if user == "admin" else "demo")
        assert browser.sign_in(user, password).status_code == 303
        return browser

    return sign_in


@pytest.fixture
def pages(climate: Climate, tmp_path: Path) -> Flask:
    """The pages over an engine of the test's own."""
    return app_over(climate, tmp_path)


@pytest.fixture
def member(pages: Flask) -> Browser:
    return signed_in(pages, "member")


@pytest.fixture
def admin(pages: Flask) -> Browser:
    return signed_in(pages, "admin")


@pytest.fixture
def reader(pages: Flask) -> Browser:
    return signed_in(pages, "reader")


@pytest.fixture
def stranger(pages: Flask) -> Browser:
    return signed_in(pages, "stranger")
