"""Validation of Compute requests; InvalidInput names what is wrong and what would be right."""

import ipaddress
import re
from uuid import UUID

from flask import request

from api.request_context import caller
from climate.domain.errors import Forbidden, InvalidInput, NotFound
from climate.domain.policy import require
from climate.whole_numbers import whole_number

_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")
_TRUE, _FALSE = ("1", "t", "true", "on", "y", "yes"), ("0", "f", "false", "off", "n", "no")
NAME_LENGTH = 255
MOST_METADATA = 128


def name(value: object, field: str = "name") -> str:
    """Return a name: 1 to 255 characters, not only blanks, no control characters, no `/` and no `..`."""
    if not isinstance(value, str) or not value.strip() or len(value) > NAME_LENGTH:
        raise InvalidInput(f"{field} must be a text of 1 to {NAME_LENGTH} characters that are not only blanks")
    if _CONTROL.search(value):
        raise InvalidInput(f"{field} must be one line without control characters")
    if "../" in value or "..\\" in value or value in (".", ".."):
        raise InvalidInput(f"{field} must not contain '../' or '..\\', got {value[:80]!r}")
    return value.strip()


def description(value: object, field: str = "description") -> str | None:
    """Return a description: up to 255 characters, with line breaks as the only control characters; None: none given."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > NAME_LENGTH or _CONTROL.search(value.replace("\n", "")):
        raise InvalidInput(f"{field} must be a text of at most {NAME_LENGTH} characters, or null")
    return value


def zone_name(value: object, field: str = "availability_zone") -> str:
    """Return the name of an availability zone, without a host."""
    zone = name(value, field)
    if ":" in zone:
        raise InvalidInput(f"{field} must be the name of a zone, without a host")
    return zone


def address(value: object, version: int) -> str | None:
    """Return an IP address of that version (4 or 6) in canonical form; None for null and for an empty text."""
    if value in (None, ""):
        return None
    try:
        address = ipaddress.ip_address(value) if isinstance(value, str) else None
    except ValueError:
        address = None
    if address is None or address.version != version:
        raise InvalidInput(f"accessIPv{version} must be an IPv{version} address, or empty")
    return str(address)


def count(value: object, field: str, lowest: int = 0, highest: int = 2**31 - 1) -> int:
    """Return a whole number, given as a number or as digits."""
    if isinstance(value, str):
        value = whole_number(value)
    if isinstance(value, bool) or not isinstance(value, int) or not lowest <= value <= highest:
        raise InvalidInput(f"{field} must be a whole number from {lowest} to {highest}")
    return value


def flag(value: object, field: str) -> bool:
    """Return a boolean, given as one or as a text."""
    if isinstance(value, bool):
        return value
    word = str(value).lower() if isinstance(value, (str, int)) else ""
    if word not in _TRUE + _FALSE:
        raise InvalidInput(f"{field} must be true or false, not {str(value)[:40]!r}")
    return word in _TRUE


def uuid(value: object, field: str) -> str:
    """Return a UUID in canonical form."""
    try:
        return str(UUID(value)) if isinstance(value, str) and len(value) <= 36 else _no_uuid(field)
    except ValueError:
        return _no_uuid(field)


def metadata(value: object, field: str = "metadata") -> dict[str, str]:
    """Return metadata: keys and texts of up to 255 characters. Raise Forbidden for more of them than the quota."""
    if not isinstance(value, dict):
        raise InvalidInput(f"{field} must be an object of at most {MOST_METADATA} texts")
    if len(value) > MOST_METADATA:
        raise Forbidden(f"Quota exceeded: {field} must be an object of at most {MOST_METADATA} texts")
    for key, text in value.items():
        if not 0 < len(key) <= NAME_LENGTH or not isinstance(text, str) or len(text) > NAME_LENGTH:
            raise InvalidInput(f"{field}: keys and values must be texts of at most {NAME_LENGTH} characters")
    return dict(value)


def path_id(text: str, what: str = "Instance") -> str:
    """Return the id in a path; NotFound if it is not a UUID."""
    try:
        return str(UUID(text)) if len(text) == 36 else _nobody(text, what)
    except ValueError:
        return _nobody(text, what)


def query_flag(key: str) -> bool:
    """Return a boolean of the query string; a bare `?key` is true, an absent one false."""
    text = request.args.get(key)
    return False if text is None else text == "" or flag(text, key)


def own_project() -> str | None:
    """Return the project whose resources the caller may see; None: all projects."""
    return None if caller().is_admin else caller().project_id


def may_read() -> None:
    """Require the right to read servers and their resources."""
    require(caller(), "servers:get")


def may_write() -> None:
    """Require the right to create and change servers."""
    require(caller(), "servers:write")


def may_administer() -> None:
    """Require the right to administer the cloud."""
    require(caller(), "compute:admin")


def _no_uuid(field: str) -> str:
    raise InvalidInput(f"{field} must be a UUID")


def _nobody(text: str, what: str) -> str:
    raise NotFound(f"{what} {text[:80]} could not be found.")
