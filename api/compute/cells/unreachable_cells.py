"""Lists over the cells of a tree: the cells missing in an answer, and resources of other cells."""

from collections.abc import Mapping

from climate.compute.cells.errors import CellError
from climate.compute.cells.messaging import paths
from climate.compute.cells.state import inventory
from climate.domain.errors import InvalidInput


def unreachable(missing: Mapping[str, str]) -> dict[str, object]:
    """Return the key that names the cells missing in a list; empty when all cells have answered."""
    cells = [{"cell": path, "reason": reason} for path, reason in missing.items()]
    return {"unreachable_cells": cells} if cells else {}


def check_is_here(name: str) -> None:
    """Raise InvalidInput for a service or host of another cell, which only that cell can update."""
    if inventory.is_foreign(name):
        path, item = paths.split_item(name)
        raise InvalidInput(f"{item[:80]} is in the cell {str(path)[:200]}: change it there.")


def check_is_known(missing: Mapping[str, str], name: str) -> None:
    """Raise CellError if a resource that was not found may be in a cell that has not answered."""
    path, _ = paths.split_item(name)
    if path is not None and path in missing:
        raise CellError(f"The cell {path} cannot be reached: {missing[path]}.")
