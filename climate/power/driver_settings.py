"""What the settings of several drivers have in common, and the last look at them before they are used."""

import re
from ipaddress import IPv6Address
from typing import Any

from marshmallow import Schema, ValidationError, fields, validate

from climate.power import PowerRefused, Target

TIMEOUT_SECONDS = 10.0

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*", re.ASCII)


def is_machine(text: str) -> bool:
    """Whether this can be the name or the address of a machine; IPv6 stands without brackets."""
    if ":" not in text:
        return bool(_NAME.fullmatch(text))
    try:
        return IPv6Address(text).scope_id is None
    except ValueError:
        return False


class PowerSettings(Schema):
    """What every driver may be told."""

    timeout_seconds = fields.Float(
        load_default=TIMEOUT_SECONDS,
        validate=validate.Range(0.1, 60),
        metadata={"description": "Longest time that one call may take, in seconds."},
    )


def accepted(schema: type[Schema], target: Target) -> dict[str, Any]:
    """The settings and secrets of a host in one, defaults filled in; PowerRefused says which cannot be used.

    They were looked at when they were given.  They come from elsewhere now,
    and go into addresses and commands.  No message of the schemas repeats a value.
    """
    try:
        loaded: dict[str, Any] = schema().load({**target.settings, **target.secrets})
    except ValidationError as error:
        wrong = " ".join(f"{name}: {' '.join(map(str, said))}" for name, said in sorted(error.messages_dict.items()))
        raise PowerRefused(f"the power settings of {target.host} cannot be used: {wrong}") from None
    return loaded
