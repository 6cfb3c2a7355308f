"""Entry points of installed packages are read once in a process, however often plugins and schedulers are chosen."""

import sys
from collections.abc import Iterable
from importlib.abc import MetaPathFinder
from importlib.metadata import Distribution, DistributionFinder, entry_points
from pathlib import Path

import pytest

from climate import plugin, power
from climate.configuration import scheduler
from climate.entry_points import installed
from climate.settings import Settings


class Counted(MetaPathFinder):
    """A finder that finds nothing, and counts how often installed packages are looked for."""

    looks = 0

    def find_spec(self, *_: object) -> None:
        return None

    def find_distributions(self, _: DistributionFinder.Context) -> Iterable[Distribution]:  # type: ignore[override]
        self.looks += 1
        return []


def test_packages_are_looked_for_once_a_process(tmp_path: Path) -> None:
    finder = Counted()
    sys.meta_path.insert(0, finder)
    try:
        for _ in range(2):
            plugin.load()
            power.load(tmp_path)
            scheduler.chosen(Settings())
    finally:
        sys.meta_path.remove(finder)
    assert finder.looks <= 1


@pytest.mark.parametrize("group", [plugin.GROUP, power.GROUP, "climate.schedulers", "climate.nothing_of_this_name"])
def test_a_group_has_the_entry_points_that_are_installed(group: str) -> None:
    assert sorted(installed(group)) == sorted(entry_points(group=group))
