"""An engine with cleaning time, and a tree of cells with engines, beside that of all tests."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from tests.compute.cells.tree import CellDatabases
from tests.databases import unsafe
from tests.service.cell_tree import CellFamily, cell_family

CLEANING = timedelta(minutes=10)


@pytest.fixture
def cleaned(climate: Climate) -> Climate:
    """The engine, with ten minutes of cleaning time after a lease."""
    return replace(climate, settings=replace(climate.settings, cleaning_time=int(CLEANING.total_seconds())))


@pytest.fixture
def cloud(climate: Climate) -> FakeCloud:
    assert isinstance(climate.cloud, FakeCloud)
    return climate.cloud


@pytest.fixture(scope="session")
def standing_cells(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CellFamily]:
    databases = CellDatabases(lambda: unsafe(make_database(cloud_template)))
    with cell_family(databases, tmp_path_factory.mktemp("cells")) as found:
        yield found


@pytest.fixture
def cells(standing_cells: CellFamily) -> Iterator[CellFamily]:
    """A top cell without hosts, and three cells below it with hosts; nothing is promised yet."""
    standing_cells.report()
    yield standing_cells
    standing_cells.tidy()
