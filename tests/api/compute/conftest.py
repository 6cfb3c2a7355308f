"""One database per session, a cloud with its app made anew in it for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.compute.api_clients import Person, World, world, written


@pytest.fixture
def there(cloud_database: str, tmp_path: Path) -> Iterator[World]:
    with world(cloud_database, tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def standing(cloud_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """One cloud for all tests of a module."""
    with world(cloud_database, tmp_path_factory.mktemp("home")) as found:
        yield found


@pytest.fixture
def untouched(standing: World) -> Iterator[None]:
    """Nothing is left behind by the test."""
    before = written(standing)
    yield
    assert written(standing) == before


@pytest.fixture
def member(there: World) -> Person:
    return Person(there.app, "member")


@pytest.fixture
def admin(there: World) -> Person:
    return Person(there.app, "admin")


@pytest.fixture
def stranger(there: World) -> Person:
    return Person(there.app, "stranger")


@pytest.fixture
def reader(there: World) -> Person:
    return Person(there.app, "reader")
