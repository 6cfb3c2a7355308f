"""JSON schemas of what compute takes and answers, spelled in few words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]

LINE = r"^[^\x00-\x1f\x7f\x85\u2028\u2029]*[^\s\x00-\x1f\x7f\x85\u2028\u2029][^\x00-\x1f\x7f\x85\u2028\u2029]*$"
"""One line that is not only blanks."""


@dataclass(frozen=True, slots=True)
class Operation:
    """A route: what it takes, and what it answers when all is well and when it is not."""

    answers: Mapping[int, Schema | None]
    """Status -> the schema of the body; None: there is none."""
    takes: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    refuses: tuple[int, ...] = ()
    """Statuses beyond those that every route may answer."""
    public: bool = False
    """Answered without a token."""


def text(longest: int = 255, *, pattern: str | None = None) -> Schema:
    found: Schema = {"type": "string", "maxLength": longest}
    return found | ({"pattern": pattern} if pattern else {})


def name(longest: int = 255) -> Schema:
    """A name: one line, not only blanks."""
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
    """An object of texts, as metadata and extra specs are."""
    return {
        "type": "object",
        "additionalProperties": text(),
        "propertyNames": {"minLength": 1, "maxLength": 255},
        "maxProperties": most,
    }


def thing(required: tuple[str, ...] = (), /, **keys: Schema) -> Schema:
    """An object with these keys and no others."""
    return {"type": "object", "properties": keys, "required": list(required), "additionalProperties": False}


def below(key: str, schema: Schema) -> Schema:
    """A body with one key, as compute's are."""
    return {"type": "object", "properties": {key: schema}, "required": [key], "additionalProperties": False}


def answer(key: str, kind: str = "object") -> Schema:
    """An answer that holds at least this key."""
    return {"type": "object", "properties": {key: {"type": kind}}, "required": [key]}


PAGE = {"limit": number(1), "marker": text(64)}
"""What every list takes."""
