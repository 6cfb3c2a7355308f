"""A database for each cell, a tree made anew for each test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.compute.cells.tree import CellDatabases, Tree, tree
from tests.databases import unsafe


@pytest.fixture(scope="session")
def cell_databases(make_database: Callable[..., str], cloud_template: str) -> CellDatabases:
    return CellDatabases(lambda: unsafe(make_database(cloud_template)))


@pytest.fixture
def cells(cell_databases: CellDatabases, tmp_path: Path) -> Iterator[Tree]:
    """Four cells: top with left and right, and leaf below right."""
    with tree(cell_databases, tmp_path) as found:
        yield found
