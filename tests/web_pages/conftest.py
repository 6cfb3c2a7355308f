"""Chromium before a running climate, one of each for all tests here; nothing is downloaded."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.web_pages.chromium import ARGUMENTS, Visitor, program, visitor
from tests.web_pages.stack import Pages, running

Open = Callable[..., AbstractContextManager[Visitor]]


@pytest.fixture(scope="package")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """A climate with the demo cloud, whose holds outlast all tests."""
    with running(tmp_path_factory.mktemp("pages"), {"CLIMATE_HOLD_SECONDS": "86400"}) as one:
        yield one


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def open_browser(chromium: Browser, pages: Pages) -> Open:
    """Open a browser: `with open_browser(size=NARROW, dark=True, scripts=False) as somebody`."""
    return partial(visitor, chromium, pages.url)
