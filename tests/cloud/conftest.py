"""The `openstack` cloud, and the fake of Nova behind it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from climate.cloud import Cloud
from tests.cloud.nova import Nova, nova


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Nova, Cloud]]:
    with nova(tmp_path) as found:
        yield found


@pytest.fixture
def there(both: tuple[Nova, Cloud]) -> Nova:
    return both[0]


@pytest.fixture
def cloud(both: tuple[Nova, Cloud]) -> Cloud:
    return both[1]
