"""Every filter and weigher that can be named in the settings is described for those who set them."""

from importlib.metadata import entry_points
from pathlib import Path

import pytest

from climate.compute.scheduler import entry_points as load
from climate.compute.scheduler.filters import FILTERS

TEXT = (Path(__file__).parents[3] / "docs" / "filters.md").read_text("utf-8")


@pytest.mark.parametrize("group", [load.FILTER_GROUP, load.WEIGHER_GROUP])
def test_every_name_is_described(group: str) -> None:
    names = [entry.name for entry in entry_points(group=group)]
    assert names
    assert [name for name in names if f"`{name}`" not in TEXT] == []


def test_the_default_filters_are_marked_in_their_order() -> None:
    marked = [line.split("`")[1] for line in TEXT.splitlines() if line.startswith("| `") and "*default*" in line]
    assert marked == [rule.name for rule in FILTERS]
