"""Common settings of drivers, and their validation before use."""

import re
from ipaddress import IPv6Address
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from climate.power import PowerRefused, Target

TIMEOUT_SECONDS = 10.0

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*", re.ASCII)


def is_machine(text: str) -> bool:
    """Return whether this can be the name or the address of a machine; IPv6 has no brackets."""
    if ":" not in text:
        return bool(_NAME.fullmatch(text))
    try:
        return IPv6Address(text).scope_id is None
    except ValueError:
        return False


class PowerSettings(Schema):
    """Settings that every driver accepts."""

    timeout_seconds = fields.Float(
        load_default=TIMEOUT_SECONDS,
        validate=validate.Range(0.1, 60),
        metadata={"description": "Longest time that one call may take, in seconds."},
    )


def accepted(schema: type[Schema], target: Target) -> dict[str, Any]:
    """Return the settings and secrets of a host merged, with defaults. Raise PowerRefused that names the unusable ones.

    They were validated when they were set, but are read from storage now and go into addresses and commands. No message
    of the schemas repeats a value.
    """
    try:
        loaded: dict[str, object] = schema().load({**target.settings, **target.secrets})
    except ValidationError as error:
        wrong = " ".join(f"{name}: {' '.join(map(str, said))}" for name, said in sorted(error.messages_dict.items()))
        raise PowerRefused(f"the power settings of {target.host} cannot be used: {wrong}") from None
    return loaded
