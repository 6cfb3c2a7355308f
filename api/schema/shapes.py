"""JSON schema building blocks for the Compute API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

LINE = r"^[^\x00-\x1f\x7f\x85\u2028\u2029]*[^\s\x00-\x1f\x7f\x85\u2028\u2029][^\x00-\x1f\x7f\x85\u2028\u2029]*$"
"""One line that is not only blanks."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A route: its body, its good answer, and its errors."""

    answers: Mapping[int, Schema | None]
    """Status -> the schema of the body; None: no body."""
    takes: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    refuses: tuple[int, ...] = ()
    """Statuses in addition to the common ones."""
    public: bool = False
    """Whether the route needs no token."""


def text(longest: int = 255, *, pattern: str | None = None) -> Schema:
    schema: Schema = {"type": "string", "maxLength": longest}
    return schema | ({"pattern": pattern} if pattern else {})


def name(longest: int = 255) -> Schema:
    """Return the schema of a name: one line, not only blanks."""
    return {"type": "string", "minLength": 1, "maxLength": longest, "pattern": LINE}


def uuid() -> Schema:
    return {"type": "string", "format": "uuid"}


def number(lowest: int = 0, highest: int = 2**31 - 1) -> Schema:
    return {"type": "integer", "minimum": lowest, "maximum": highest}


def flag() -> Schema:
    return {"type": "boolean"}


def one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def listing(of: Schema, most: int | None = None) -> Schema:
    return {"type": "array", "items": of} | ({"maxItems": most} if most is not None else {})


def texts(most: int = 128) -> Schema:
    """Return the schema of an object of texts, such as metadata and extra specs."""
    return {
        "type": "object",
        "additionalProperties": text(),
        "propertyNames": {"minLength": 1, "maxLength": 255},
        "maxProperties": most,
    }


def thing(required: tuple[str, ...] = (), /, **keys: Schema) -> Schema:
    """Return the schema of an object with exactly these keys."""
    return {"type": "object", "properties": keys, "required": list(required), "additionalProperties": False}


def below(key: str, schema: Schema) -> Schema:
    """Return the schema of a body whose content is below one key."""
    return {"type": "object", "properties": {key: schema}, "required": [key], "additionalProperties": False}


def answer(key: str, kind: str = "object") -> Schema:
    """Return the schema of an answer that has at least this key."""
    return {"type": "object", "properties": {key: {"type": kind}}, "required": [key]}


PAGE = {"limit": number(1), "marker": text(64)}
"""Query parameters of every list."""
