"""Bodies that create one resource, or several of a kind at once."""

from api.schema.body import Below, Values
from api.schema.shapes import Schema, below, listing
from climate.domain.errors import InvalidInput

MOST = 100
"""Most resources of one request."""


def entries(body: Values, key: str, one: Below) -> tuple[list[Values], bool]:
    """Return the resources in a body, below `key` or below its plural, and whether it was the plural. InvalidInput."""
    many = body.get(f"{key}s")
    if many is None or key in body:
        return [one.read(body)], False
    if not isinstance(many, list) or not 1 <= len(many) <= MOST:
        raise InvalidInput(f"{key}s must be a list of 1 to {MOST} objects")
    return [one.read({key: entry}) for entry in many], True


def shape(key: str, one: Below) -> Schema:
    """Return the JSON schema of a body with one resource, or with several."""
    several = {**listing(one.content.shape(), MOST), "minItems": 1}
    return {"anyOf": [one.shape(), below(f"{key}s", several)]}
