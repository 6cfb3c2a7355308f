"""Lists over the cells of a tree: the cells that are missing in an answer, and things of other cells."""

from collections.abc import Mapping
from typing import Any

from climate.compute.cells.errors import CellError
from climate.compute.cells.messaging import paths
from climate.compute.cells.state import inventory
from climate.domain.errors import InvalidInput


def unreachable(missing: Mapping[str, str]) -> dict[str, Any]:
    """Return what a list says of the cells that are not in it; nothing when all cells have answered."""
    cells = [{"cell": path, "reason": reason} for path, reason in missing.items()]
    return {"unreachable_cells": cells} if cells else {}


def check_is_here(name: str) -> None:
    """Raise InvalidInput for a service or host of another cell, which is changed there."""
    if inventory.is_foreign(name):
        path, item = paths.split_item(name)
        raise InvalidInput(f"{item[:80]} is in the cell {str(path)[:200]}: change it there.")


def check_is_known(missing: Mapping[str, str], name: str) -> None:
    """Raise CellError when a thing that was not found is in a cell that has not answered."""
    path, _ = paths.split_item(name)
    if path is not None and path in missing:
        raise CellError(f"The cell {path} cannot be asked: {missing[path]}.")
