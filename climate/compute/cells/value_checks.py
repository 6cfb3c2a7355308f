"""Checks of single values of messages between cells, shared by what reads builds, reports and inventories."""

from collections.abc import Callable

from climate.compute.models.server import is_id

Check = Callable[[object], bool]


def or_none(check: Check) -> Check:
    """Return the check that accepts None too."""
    return lambda value: value is None or check(value)


def is_flag(value: object) -> bool:
    """Return whether a value is true or false."""
    return isinstance(value, bool)


def is_size(value: object) -> bool:
    """Return whether a value is a whole number from 0 to the highest one of 32 bits in the database."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def is_uuid(value: object) -> bool:
    """Return whether a value is the id of a server or a service."""
    return isinstance(value, str) and is_id(value)
