"""Trees of zones."""

from collections.abc import Callable, Iterator

import pytest

from tests.compute.zones import build_plan_trees
from tests.compute.zones import tree as trees
from tests.compute.zones.tree import Tree


@pytest.fixture(scope="module")
def standing(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tree]:
    """One zone for all tests of a module."""
    with trees.tree(make_database, cloud_template, tmp_path_factory.mktemp("lone"), ("parent",)) as found:
        yield found


@pytest.fixture
def lone(standing: Tree) -> Tree:
    """One zone without children."""
    standing["parent"].forget_zones()
    return standing


@pytest.fixture(scope="module", params=["memory", pytest.param("sockets", marks=pytest.mark.campaign)])
def standing_family(
    request: pytest.FixtureRequest,
    make_database: Callable[..., str],
    cloud_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Tree]:
    """One tree for all tests of a module, in memory and over HTTP."""
    home, sockets = tmp_path_factory.mktemp("family"), request.param == "sockets"
    with trees.tree(make_database, cloud_template, home, sockets=sockets) as found:
        yield found


@pytest.fixture
def family(standing_family: Tree) -> Tree:
    """Parent -> left and right, left -> grandchild; nobody was polled yet."""
    for zone in standing_family.zones.values():
        zone.forget_zones()
        standing_family.mend(zone.name)
    standing_family.asked.clear()
    return trees.grown(standing_family)


@pytest.fixture(scope="module")
def standing_plans(
    make_database: Callable[..., str], cloud_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Tree]:
    """One tree for all tests of a module; each zone has a key for build plans."""
    with build_plan_trees.planned(
        make_database, cloud_template, tmp_path_factory.mktemp("plans"), trees.NAMES
    ) as found:
        yield found


@pytest.fixture
def plans(standing_plans: Tree) -> Tree:
    """Parent -> left and right, left -> grandchild; nothing was built yet."""
    return trees.grown(build_plan_trees.cleared(standing_plans))


@pytest.fixture
def pair(standing_plans: Tree) -> Tree:
    """Parent -> left, of the same zones."""
    found = build_plan_trees.cleared(standing_plans)
    found["parent"].adopt(found["left"])
    return found
