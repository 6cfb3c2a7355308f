"""Storage of the neighbours of a cell without the API, since a child cell need not run the web process."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from climate import bootstrap
from climate.compute.cells import neighbours
from climate.compute.cells.errors import CellError, CellExists
from climate.compute.cells.models import Broker, Cell
from climate.compute.errors import ComputeError
from climate.settings import Settings


class LinkRefused(Exception):
    """The neighbour cannot be stored; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Link:
    """A neighbour and the address of its broker: the fields of `climate.compute.cells.models.Broker`."""

    name: str
    is_parent: bool
    broker: Mapping[str, Any] = field(repr=False)
    weight_offset: float = 0.0
    weight_scale: float = 1.0


def store(settings: Settings, link: Link, *, replace: bool = False) -> None:
    """Store a neighbour in the database of `settings`; with `replace`, update an existing one of this name.

    Raise LinkRefused.
    """
    if not settings.cells_enable:
        raise LinkRefused("this deployment is not a cell; set CLIMATE_CELLS_ENABLE=true")
    deployment = bootstrap.build(settings, application="climate-cell-link", pool_size=1)
    compute = deployment.compute
    try:
        broker = Broker(**link.broker)
        neighbours.create(compute, Cell(link.name, link.is_parent, broker, link.weight_offset, link.weight_scale))
    except CellExists as known:
        if not replace:
            raise LinkRefused(str(known)) from None
        fields = {key: getattr(link, key) for key in ("is_parent", "weight_offset", "weight_scale")}
        neighbours.change(compute, link.name, fields, link.broker)
    except (ComputeError, CellError) as refusal:
        raise LinkRefused(str(refusal)) from None
    finally:
        compute.engine.dispose()
