"""Bodies of cells: a neighbour, and a request for reports of servers."""

import re
from datetime import UTC, datetime
from typing import Any

from api.compute import validation
from api.schema.body import ABSENT, Below, Body, Key, Shape, as_given
from api.schema.shapes import flag, name, number, one_of, or_null, text
from climate.domain.errors import InvalidInput

TYPES = {"parent": True, "child": False}
BROKER = frozenset({"username", "password", "host", "port", "virtual_host", "transport_url", "secret"})
"""Attributes of the connection; the others belong to the cell."""

LARGEST_WEIGHT = 1e12
WEIGHT: Shape = {"type": "number", "minimum": -LARGEST_WEIGHT, "maximum": LARGEST_WEIGHT}
LINE = or_null(text(1024, pattern=r"^[\x20-\x7e]*$"))
HOST = or_null(text(255, pattern="^[A-Za-z0-9_.:-]*$"))
DATABASE = or_null(text(5, pattern="^[0-9]*$"))
URL = or_null(text(1000, pattern=r"^((redis|rediss|unix)://[\x21-\x7e]+)?$"))
SECRET = or_null({"type": "string", "minLength": 16, "maxLength": 1024, "pattern": r"^[\x20-\x7e]*$"})

_HOST = re.compile(r"[A-Za-z0-9_.:-]{1,255}")
_DATABASE = re.compile(r"\d{1,5}")
_URL = re.compile(r"(redis|rediss|unix)://\S{1,1000}")


def _text(value: object, field: str) -> str | None:
    """Return a text of the connection; None for null and for an empty text."""
    if value in (None, ""):
        return None
    if not isinstance(value, str) or len(value) > 1024 or not value.isprintable():
        raise InvalidInput(f"cell: {field} must be one line of at most 1024 characters, or null")
    return value


def _host(value: object, field: str) -> str | None:
    text = _text(value, field)
    if text is not None and not _HOST.fullmatch(text):
        raise InvalidInput(f"cell: {field} must be a host name or an IP address, got {text[:80]!r}")
    return text


def _database(value: object, field: str) -> str | None:
    text = _text(value, field)
    if text is not None and not _DATABASE.fullmatch(text):
        raise InvalidInput(f"cell: {field} must be the number of a database in Redis, got {text[:40]!r}")
    return text


def _url(value: object, field: str) -> str | None:
    text = _text(value, field)
    if text is not None and not _URL.fullmatch(text):
        raise InvalidInput(f"cell: {field} must begin with redis://, rediss:// or unix://")
    return text


def _port(value: object, field: str) -> int | None:
    return None if value is None else validation.count(value, field, 1, 65535)


def _type(value: object, field: str) -> bool:
    if value not in tuple(TYPES):
        raise InvalidInput(f"cell: {field} must be parent or child, got {str(value)[:40]!r}")
    return TYPES[value]


def _weight(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST_WEIGHT:
        raise InvalidInput(f"cell: {field} must be a number, got {str(value)[:40]!r}")
    return float(value)


def _time(value: Any, field: str) -> str:
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        raise InvalidInput(f"{field} must be a time like 2030-01-31T16:00:00Z, got {str(value)[:40]!r}") from None
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).isoformat()


class CellBody(Body):
    """A neighbour; an update has only the keys that change."""

    UNKNOWN = "cell: there is no key {first!r}; there are {sorted}"

    name = Key(as_given, text(64, pattern="^[A-Za-z0-9_-]+$"), default=ABSENT, required=True)
    weight_offset = Key(_weight, WEIGHT, default=ABSENT)
    weight_scale = Key(_weight, WEIGHT, default=ABSENT)
    is_parent = Key(_type, one_of(*TYPES), key="type", default=ABSENT)
    username = Key(_text, LINE, default=ABSENT)
    password = Key(_text, LINE, default=ABSENT)
    host = Key(_host, HOST, key="rpc_host", default=ABSENT)
    virtual_host = Key(_database, DATABASE, key="rpc_virtual_host", default=ABSENT)
    transport_url = Key(_url, URL, default=ABSENT)
    secret = Key(_text, SECRET, default=ABSENT)
    port = Key(_port, or_null(number(1, 65535)), key="rpc_port", default=ABSENT)


class SyncBody(Body):
    """Filter of the servers that cells report at once; absent: all."""

    UNKNOWN = "there is no key {first!r}; there are {sorted}"

    project_id = Key(validation.name, name(), default=ABSENT)
    updated_since = Key(_time, {"type": "string", "format": "date-time"}, default=ABSENT)
    deleted = Key(validation.flag, flag(), default=ABSENT)


CELL, SYNC = Below("cell", CellBody()), SyncBody()
CHANGED = Below("cell", CellBody(exclude=("name",)))
"""Body of an update in the document; it is read with the name, so that a renaming is refused as one."""
