"""One scratch database per session, a cloud made anew in it for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compute.cloud_factory import Place, node, place
from tests.databases import unsafe


@pytest.fixture(scope="session")
def scratch(make_database: Callable[..., str], cloud_template: str) -> str:
    return unsafe(make_database(cloud_template))


@pytest.fixture
def here(scratch: str, tmp_path: Path) -> Iterator[Place]:
    """A cloud of four nodes that only pretend: 8 vCPUs, 8192 MB, 100 GB each."""
    with place(scratch, tmp_path, [node(f"n{number}") for number in range(1, 5)]) as found:
        yield found
