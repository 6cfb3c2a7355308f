"""Filters and weighers of cells, on order."""

from typing import Any

import pytest

from climate.compute.cells.builds import candidates
from climate.compute.cells.builds.candidates import Candidate
from climate.compute.cells.builds.request import Build
from climate.compute.cells.options import CellOptions


def build(ram_mb: int = 512, **wanted: Any) -> Build:
    return Build("r-1", ("id",), 1, "demo", "dora", "s", "tiny", ram_mb, **wanted)


def roomy(name: str, **units: int) -> Candidate:
    by_size = {size.removeprefix("mb"): count for size, count in units.items()}
    return Candidate(name, capacities={"ram_free": {"total_mb": 1, "units_by_mb": by_size}})


FOUR = [
    roomy("cell1", mb512=1, mb1024=4, mb2048=3),
    roomy("cell2", mb512=2, mb1024=3, mb2048=4),
    roomy("cell3", mb512=3, mb1024=2, mb2048=1),
    roomy("cell4", mb512=4, mb1024=1, mb2048=2),
]


def order(found: list[Candidate], ram_mb: int = 512, **options: Any) -> str:
    return "".join(cell.name[-1] for _, cell in candidates.weighed(found, build(ram_mb), CellOptions(**options)))


@pytest.mark.parametrize(("ram_mb", "wanted"), [(512, "4321"), (1024, "1234"), (2048, "2143")])
def test_ce_20_more_room_first(ram_mb: int, wanted: str) -> None:
    assert order(FOUR, ram_mb) == wanted
    assert order(FOUR, ram_mb, ram_multiplier=-10.0) == wanted[::-1]


def test_ce_20_size_that_nobody_reports_weighs_nothing() -> None:
    assert candidates.weight(FOUR[0], build(4096), CellOptions()) == 0


def test_ce_20_offsets() -> None:
    offsets = {"cell1": -200.0, "cell2": -200.1, "cell3": 400.0, "cell4": 300.0}
    assert order([Candidate(name, weight_offset=offset) for name, offset in offsets.items()]) == "3412"


def test_ce_20_mute_cells_come_last() -> None:
    found = [Candidate(f"cell{number}", mute=number in (1, 3)) for number in (1, 2, 3, 4)]
    weights = {cell.name: weight for weight, cell in candidates.weighed(found, build(), CellOptions())}
    assert weights == {"cell1": -10000, "cell2": 0, "cell3": -10000, "cell4": 0}
    assert order(found)[:2] == "24"


def test_offset_outweighs_room() -> None:
    """Values are not normalised, so that an offset can make a cell the default."""
    assert order([roomy("cell1", mb512=100), Candidate("cell2", weight_offset=10**6)]) == "21"


@pytest.mark.parametrize(
    ("there", "wanted", "passes"),
    [
        (("6.2",), ">=6.0,<7", True),
        (("5.9",), ">=6.0,<7", False),
        (("5.9", "6.1"), ">=6.0", True),
        ((), ">=6.0", True),
        (("6.2",), None, True),
        (("unknown",), ">=6.0", False),
        (("6.2",), "nonsense", False),
    ],
)
def test_image_properties_filter(there: tuple[str, ...], wanted: str | None, passes: bool) -> None:
    capabilities = {candidates.HYPERVISOR_VERSION: there} if there else {}
    asked = build(image_properties={"hypervisor_version_requires": wanted} if wanted else {})
    assert (candidates.image_properties(Candidate("cell1", capabilities=capabilities), asked) is None) == passes


def test_cell_without_the_flavor_image_or_reservation_is_refused_with_that_reason() -> None:
    offers = {"flavors": ("tiny",), "images": ("demo",), "reservations": ("r1",)}
    cell = Candidate("cell1", offers=offers)
    assert candidates.offered(cell, build(image="demo", hints={"reservation": "r1"})) is None
    assert candidates.offered(cell, build(image="other")) == "it has no image 'other'"
    assert candidates.offered(cell, build(hints={"reservation": "r2"})) == "it has no reservation 'r2'"
    bare = Candidate("cell1", offers={**offers, "flavors": ()})
    assert candidates.offered(bare, build()) == "it has no flavor 'tiny'"


def test_cell_that_does_not_tell_its_offers_passes() -> None:
    assert candidates.offered(Candidate("cell1"), build(image="demo", hints={"reservation": "r1"})) is None
