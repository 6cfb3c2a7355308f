"""Tags of servers in bodies: texts without '/' and ',', of at most 60 characters."""

from api.schema import shapes
from api.schema.body import Body, Key
from climate.domain.errors import InvalidInput

LONGEST, MOST = 60, 50

LIST = shapes.listing(shapes.text(LONGEST, pattern="^[^,/]*$") | {"minLength": 1}, MOST)


def tag(value: object, field: str = "tag") -> str:
    """Return a tag; InvalidInput if it is no tag."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST or set(value) & set(",/\0"):
        raise InvalidInput(f"{field} must be a text of 1 to {LONGEST} characters without '/' and ','")
    return value


def read(value: object, field: str) -> tuple[str, ...]:
    """Return the tags of a list, each once and in the order of the alphabet."""
    if not isinstance(value, list) or len(value) > MOST:
        raise InvalidInput(f"{field} must be a list of at most {MOST} tags")
    return tuple(sorted({tag(entry, field) for entry in value}))


class Tags(Body):
    """Tags of a server."""

    UNKNOWN = "The body must have the key {sorted} alone, not {first!r}"

    tags = Key(read, LIST, required=True)


TAGS = Tags()
