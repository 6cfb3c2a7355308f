"""Browsers before a bundled cloud, which works when it is told."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.compute.api_clients import World, world


@pytest.fixture
def cloud(cloud_database: str, tmp_path: Path) -> Iterator[World]:
    with world(cloud_database, tmp_path) as found:
        yield found
