"""Keys and bodies that several modules of the Identity API have."""

from typing import Unpack

from api.schema.body import Below, Body, Key, KeyOptions
from climate.domain.errors import InvalidInput


def text(value: object, name: str) -> str:
    """Return a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} must be a text")
    return value


def flag(value: object, name: str) -> bool:
    """Return a boolean."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false")
    return value


def text_key(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is a text that is not empty."""
    return Key(text, {"type": "string", "minLength": 1}, **options)


def below(key: str, content: Body) -> Below:
    """Return a body in which, as in Keystone, other keys beside the resource are ignored."""
    return Below(key, content, is_open=True)
