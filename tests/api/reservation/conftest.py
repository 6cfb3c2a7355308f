"""People before the reservation API: over an engine of the test's own, or over one that only refuses."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from flask import Flask

from climate.context import Climate
from climate.store.engine import connect
from tests.api.reservation.api_clients import Person, app_over, hosts_of
from tests.conftest import Clock


@pytest.fixture
def app(climate: Climate, tmp_path: Path) -> Flask:
    return app_over(climate, tmp_path)


@pytest.fixture
def member(app: Flask) -> Person:
    return Person(app, "member")


@pytest.fixture
def admin(app: Flask) -> Person:
    return Person(app, "admin")


@pytest.fixture
def stranger(app: Flask) -> Person:
    return Person(app, "stranger")


@pytest.fixture
def reader(app: Flask) -> Person:
    return Person(app, "reader")


@pytest.fixture(scope="session")
def standing(
    make_database: Callable[..., str], engine_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Flask, Climate]]:
    """An app and its engine with four hosts, for requests that change nothing."""
    engine = connect(make_database(engine_template))
    climate = hosts_of(engine, Clock(), 4)
    yield app_over(climate, tmp_path_factory.mktemp("home")), climate
    engine.dispose()
