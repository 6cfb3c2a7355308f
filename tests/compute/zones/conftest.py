"""Trees of zones; the database that theirs are made from exists once per session."""

from collections.abc import Callable, Iterator

import pytest

from tests.compute.zones import tree as trees
from tests.compute.zones.tree import Tree


@pytest.fixture(scope="session")
def zone_template(make_database: Callable[..., str]) -> str:
    return trees.template(make_database)


@pytest.fixture(scope="module")
def standing(
    make_database: Callable[..., str], zone_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tree]:
    """One zone for all tests of a module."""
    with trees.tree(make_database, zone_template, tmp_path_factory.mktemp("lone"), ("parent",)) as found:
        yield found


@pytest.fixture
def lone(standing: Tree) -> Tree:
    """One zone without children."""
    standing["parent"].forget_zones()
    return standing


@pytest.fixture(scope="module")
def standing_family(
    make_database: Callable[..., str], zone_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tree]:
    """One tree for all tests of a module."""
    with trees.tree(make_database, zone_template, tmp_path_factory.mktemp("family")) as found:
        yield found


@pytest.fixture
def family(standing_family: Tree) -> Tree:
    """Parent -> left and right, left -> grandchild; nobody was polled yet."""
    for zone in standing_family.zones.values():
        zone.forget_zones()
        standing_family.mend(zone.name)
    standing_family.asked.clear()
    return trees.grown(standing_family)
