"""Browsers before a bundled cloud, which works when it is told."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from climate.compute.store.tables import metadata
from climate.store.engine import connect
from tests.api.compute.api_clients import World, world
from tests.compute.cloud_factory import unsafe


@pytest.fixture(scope="session")
def cloud_database(make_database: Callable[..., str], engine_template: str) -> str:
    """A database with all tables."""
    url = unsafe(make_database(engine_template))
    engine = connect(url, pool_size=1)
    metadata.create_all(engine)
    engine.dispose()
    return url


@pytest.fixture
def cloud(cloud_database: str, tmp_path: Path) -> Iterator[World]:
    with world(cloud_database, tmp_path) as found:
        yield found
