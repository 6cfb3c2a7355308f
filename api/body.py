"""Strict reading of request bodies."""

from typing import Any

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge, UnsupportedMediaType

from climate import strict_json
from climate.domain.errors import InvalidInput
from climate.strict_json import BadJson

LONGEST = 1024 * 1024
"""Bytes of a body; more is 413."""

JSON = ("application/json",)


def read_object() -> dict[str, Any]:
    """Return the request's body as a JSON object; InvalidInput, 413 or 415 if it is not one."""
    value = read_json()
    if not isinstance(value, dict):
        raise InvalidInput(f"The body must be a JSON object, not {_kind(value)}")
    return value


def read_json(types: tuple[str, ...] = JSON) -> object:
    """Return the request's body, which must be JSON of one of these content types."""
    data = request.get_data(cache=True)
    if request.content_length is None and len(data) >= LONGEST:  # sent in pieces, and cut off at the limit
        raise RequestEntityTooLarge()
    if request.mimetype not in types and (data or request.mimetype):
        raise UnsupportedMediaType(f"Content-Type must be {' or '.join(types)}")
    return parse(data)


def parse(data: bytes) -> object:
    """Return one JSON value; InvalidInput says what is wrong and where."""
    if not data.strip():
        raise InvalidInput("The body is empty; send a JSON object")
    try:
        return strict_json.parse(data)
    except BadJson as error:
        raise InvalidInput(f"The body {error}") from None


def _kind(value: object) -> str:
    names = {list: "a list", str: "a text", bool: "a truth value", int: "a number", float: "a number"}
    return names.get(type(value), "null")
