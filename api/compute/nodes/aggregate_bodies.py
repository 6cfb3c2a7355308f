"""Bodies of aggregates: creation, update and actions."""

from api.compute import common_body_keys as keys
from api.compute import validation
from api.schema import shapes
from api.schema.body import ABSENT, Below, Body, Choice, Key
from climate.domain.errors import InvalidInput

TEXTS_OR_NULL: shapes.Schema = {
    "type": "object",
    "additionalProperties": shapes.or_null(shapes.text()),
    "propertyNames": {"minLength": 1, "maxLength": validation.NAME_LENGTH},
    "maxProperties": validation.MOST_METADATA,
}


class NewAggregate(Body):
    """A name, and perhaps an availability zone."""

    UNKNOWN = "aggregate has no {first}; it may have {known}"

    name = keys.name(required=True)
    availability_zone = keys.name().or_null()


class ChangedAggregate(NewAggregate):
    """A new name, a new availability zone, or both."""

    EMPTY = "aggregate must hold name, availability_zone, or both"

    name = keys.name(default=ABSENT)


class AggregateHost(Body):
    """Host that an aggregate gets or loses."""

    UNKNOWN = "aggregate: {first!r} cannot be set; known is {sorted}"

    host = keys.name(required=True)


def _changed_metadata(value: object, field: str) -> dict[str, str | None]:
    if not isinstance(value, dict):
        raise InvalidInput(f"{field} must be an object of texts; null deletes a key")
    kept = validation.metadata({key: "" if text is None else text for key, text in value.items()}, field)
    return {**kept, **{key: None for key, text in value.items() if text is None}}


class AggregateMetadata(Body):
    """Changes of the metadata of an aggregate; null deletes a key."""

    UNKNOWN = "aggregate: {first!r} cannot be set; known is {sorted}"

    metadata = Key(_changed_metadata, TEXTS_OR_NULL, required=True)


NEW, CHANGED = Below("aggregate", NewAggregate()), Below("aggregate", ChangedAggregate())
AGGREGATE_ACTIONS = Choice(
    {"add_host": AggregateHost(), "remove_host": AggregateHost(), "set_metadata": AggregateMetadata()},
    "The body must hold one action of add_host, remove_host, set_metadata",
)
