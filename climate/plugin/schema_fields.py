"""Field types of reservations that several plugins use."""

import re
from typing import Any

from marshmallow import ValidationError, fields, validate

from climate.domain.hosts import requirements

GIVEN_UP = "given_up"
"""Marks a reservation of a server whose user deleted it before the lease woke it."""

LONGEST_GRACE = 30 * 86400
LONGEST_PATH = 1000
CELL_PATH = re.compile(r"[A-Za-z0-9_-]{1,64}(![A-Za-z0-9_-]{1,64})*")


class Count(fields.Integer):
    """Whole number, also as digits in a text, which some clients send; never a fraction."""

    def _validated(self, value: Any) -> int:
        digits = isinstance(value, str) and re.fullmatch(r"[0-9]{1,10}", value, re.ASCII)
        if digits or (isinstance(value, int) and not isinstance(value, bool)):
            return int(value)
        raise self.make_error("invalid", input=value)


def is_requirement(text: str) -> None:
    """Raise InvalidRequirements, with the text that Blazar uses, for an invalid requirement."""
    requirements.parse(text)


def is_cell(text: str) -> None:
    """Raise ValidationError for a value that is neither a cell name nor a path of names joined by '!'."""
    if len(text) > LONGEST_PATH or not CELL_PATH.fullmatch(text):
        raise ValidationError(f"Must be a name of a cell or a path like top!left, got {text[:80]!r}.")


def grace_period() -> Count:
    return Count(
        validate=validate.Range(0, LONGEST_GRACE),
        metadata={"description": "Seconds after the end for which servers continue, without new boots."},
    )


class Affinity(fields.Field[bool | None]):
    """Placement of servers: on one host (true), each on another host (false), or on any (null).

    Clients send "True", "False" and "None".
    """

    WORDS = {"true": True, "false": False, "none": None}

    def __init__(self, **more: Any) -> None:
        says = {"type": ["boolean", "string", "null"], "description": str(self.__doc__).partition("\n")[0]}
        super().__init__(allow_none=True, metadata=says, **more)

    def _deserialize(self, value: object, *_: object, **__: object) -> bool | None:
        if isinstance(value, bool):
            return value
        word = value.strip().lower() if isinstance(value, str) else ""
        if word not in self.WORDS:
            raise ValidationError("Must be True, False or None.")
        return self.WORDS[word]
