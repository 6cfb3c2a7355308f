"""Bodies of aggregates: creation and update."""

from typing import Any

from api.compute import validation
from api.compute.openapi import shapes
from api.compute.openapi.body import ABSENT, Body, Key

NAME = shapes.name()


def _zone(value: Any, field: str) -> str | None:
    return None if value is None else validation.name(value, field)


class NewAggregate(Body):
    """A name, and perhaps an availability zone."""

    UNKNOWN = "aggregate has no {first}; it may have {known}"

    name = Key(validation.name, NAME, required=True)
    availability_zone = Key(_zone, shapes.or_null(NAME))


class ChangedAggregate(NewAggregate):
    """A new name, a new availability zone, or both."""

    name = Key(validation.name, NAME, default=ABSENT)


NEW, CHANGED = NewAggregate(), ChangedAggregate()
