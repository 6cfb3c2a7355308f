"""Validation of IP addresses, ranges and interface names; InvalidInput says what would be right."""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

from climate.domain.errors import InvalidInput

_INTERFACE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]{0,14}")


def address(value: object, field: str) -> IPv4Address:
    """Return an IPv4 address."""
    try:
        return IPv4Address(value if isinstance(value, str) else "")
    except ValueError:
        raise InvalidInput(f"{field} must be an IPv4 address, not {str(value)[:40]!r}") from None


def cidr(value: object, field: str) -> IPv4Network:
    """Return a range of IPv4 addresses, like 10.1.0.0/24."""
    try:
        return IPv4Network(value if isinstance(value, str) else "")
    except ValueError:
        why = "an IPv4 range whose address is its first one, like 10.1.0.0/24"
        raise InvalidInput(f"{field} must be {why}, not {str(value)[:40]!r}") from None


def cidr_v6(value: object, field: str) -> IPv6Network:
    """Return a range of IPv6 addresses, like fd00::/48."""
    try:
        return IPv6Network(value if isinstance(value, str) else "")
    except ValueError:
        raise InvalidInput(f"{field} must be an IPv6 range like fd00::/48, not {str(value)[:40]!r}") from None


def address_v6(value: object, field: str) -> IPv6Address:
    """Return an IPv6 address."""
    try:
        return IPv6Address(value if isinstance(value, str) else "")
    except ValueError:
        raise InvalidInput(f"{field} must be an IPv6 address, not {str(value)[:40]!r}") from None


def stretch(value: object, field: str) -> tuple[IPv4Address, IPv4Address]:
    """Return the first and last address of a CIDR, of a first-last range, or of a single address."""
    text = value if isinstance(value, str) else ""
    if "/" in text:
        whole = cidr(text, field)
        return whole[0], whole[-1]
    start, dash, end = text.partition("-")
    first = address(start.strip(), field)
    last = address(end.strip(), field) if dash else first
    if first > last:
        raise InvalidInput(f"{field}: {first} comes after {last}")
    return first, last


def interface(value: object, field: str) -> str | None:
    """Return the name of a network interface of a host; None if none is given."""
    if value is None:
        return None
    if not isinstance(value, str) or not _INTERFACE.fullmatch(value):
        raise InvalidInput(f"{field} must be the name of an interface: 1 to 15 letters, digits or . _ @ -")
    return value
