"""Demo tree of `climate up --demo cells`: an API cell with two children and a grandchild."""

import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from climate.adapters import neighbour_storage
from climate.adapters.neighbour_storage import Link
from climate.cli.demo.tree import DemoTree, Deployment, client, environ_of
from climate.cli.errors import TIMEOUT, Failure
from climate.cli.operations.journal import with_stores
from climate.settings import Settings

if TYPE_CHECKING:
    from climate.cli.response_types.zones import ListedCell

PARENTS: Mapping[str, str | None] = {
    "api-cell": None,
    "child-cell1": "api-cell",
    "child-cell2": "api-cell",
    "grandchild-cell1": "child-cell2",
}

API_CELL = {"CLIMATE_COMPUTE_API_CLASS": "nova.compute.cells_api.ComputeCellsAPI"}
COMPUTE_CELL = {"CLIMATE_COMPUTE_API_CLASS": "nova.compute.API"}
"""Settings of the API cell and of a child cell."""

CHILD_PROCESSES = ("poller", "worker", "cells")
"""A child cell has everything but the public API."""

SETTLE_SECONDS = 180.0
"""Timeout for the reports of all cells to the top cell, on a slow machine."""


def surroundings(cell: Deployment) -> dict[str, str]:
    """Return the settings of one cell."""
    own = {"CLIMATE_CELLS_ENABLE": "true", "CLIMATE_CELL_NAME": cell.name, "CLIMATE_CELL_TYPE": ""}
    return own | (API_CELL if PARENTS[cell.name] is None else COMPUTE_CELL)


def link(environ: Mapping[str, str], parent: Deployment, child: Deployment) -> None:
    """Create the link between two cells, with a new shared secret."""
    secret = secrets.token_hex(32)
    for here, other, is_parent in ((parent, child, False), (child, parent, True)):
        broker = {"transport_url": _settings(environ, other).redis_url, "secret": secret}
        neighbour_storage.store(_settings(environ, here), Link(other.name, is_parent, broker), replace=True)


def settle(top: Deployment) -> None:
    """Wait until the top cell knows the capacities of all cells; Failure names those that have not reported."""
    pause, wanted = threading.Event(), set(PARENTS) - {top.name}
    missing = wanted
    for _ in range(int(SETTLE_SECONDS / 0.5)):
        with client(top) as api:
            missing = wanted - set(_reported(api.json("compute", "GET", "/os-cells/detail")["cells"]))
        if not missing:
            return
        pause.wait(0.5)
    raise Failure(
        f"{', '.join(sorted(missing))} did not report within {SETTLE_SECONDS:g} s",
        TIMEOUT,
        f"see {top.home.parent}/*/logs/demo.log",
    )


def _reported(cells: "Sequence[ListedCell]") -> Iterator[str]:
    """Return the cells that have reported, with those below them."""
    for cell in cells:
        if cell.get("state") == "up":
            yield str(cell["name"])
        yield from _reported(cell.get("children") or ())


def _settings(environ: Mapping[str, str], cell: Deployment) -> Settings:
    return with_stores(Settings.from_env(environ_of(CELLS, environ, cell)))


CELLS = DemoTree(
    noun="cell",
    parents=PARENTS,
    surroundings=surroundings,
    join=link,
    hint=lambda top: f"CLIMATE_HOME={top.home} climate cell tree",
    child_processes=CHILD_PROCESSES,
    settle=settle,
)
