"""One scratch database per session, identity made anew in it for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.identity.identity_factory import Asker, Place, app_of, place


@pytest.fixture(scope="session")
def scratch(make_database: Callable[..., str], cloud_template: str) -> str:
    return make_database(cloud_template)


@pytest.fixture
def here(scratch: str, tmp_path: Path) -> Iterator[Place]:
    with place(scratch, tmp_path) as found:
        yield found


@pytest.fixture
def admin(here: Place) -> Asker:
    asker = Asker(app_of(here))
    assert asker.sign_in("admin", here.password("admin"), "admin").status_code == 201
    return asker


@pytest.fixture
def demo(here: Place) -> Asker:
    asker = Asker(app_of(here))
    assert asker.sign_in("demo", here.password("demo"), "demo").status_code == 201
    return asker
