"""Bodies of aggregates: creation and update."""

from api.compute import body_keys as keys
from api.schema.body import ABSENT, Below, Body


class NewAggregate(Body):
    """A name, and perhaps an availability zone."""

    UNKNOWN = "aggregate has no {first}; it may have {known}"

    name = keys.name(required=True)
    availability_zone = keys.name().or_null()


class ChangedAggregate(NewAggregate):
    """A new name, a new availability zone, or both."""

    EMPTY = "aggregate must hold name, availability_zone, or both"

    name = keys.name(default=ABSENT)


NEW, CHANGED = Below("aggregate", NewAggregate()), Below("aggregate", ChangedAggregate())
