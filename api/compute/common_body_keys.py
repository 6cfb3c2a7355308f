"""Keys that several bodies have: how a value is read, and its JSON schema, in one place."""

from collections.abc import Mapping
from typing import Unpack

from api.compute import validation
from api.compute.networks import ip_validation
from api.schema import shapes
from api.schema.body import Key, KeyOptions
from climate.domain.errors import InvalidInput

ADDRESS: shapes.Schema = {"type": "string", "format": "ipv4"}
ADDRESS_V6: shapes.Schema = {"type": "string", "format": "ipv6"}
RANGE = shapes.text(64, pattern=r"^[0-9]{1,3}([.][0-9]{1,3}){3}/[0-9]{1,2}$")
RANGE_V6 = shapes.text(64, pattern=r"^[0-9a-fA-F:]+/[0-9]{1,3}$")
STRETCH = shapes.text(64, pattern=r"^[0-9]{1,3}([.][0-9]{1,3}){3}([/-][0-9.]+)?$")
INTERFACE = shapes.text(15, pattern=r"^[A-Za-z0-9_.:-]+$") | {"minLength": 1}


def name(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is a name."""
    return Key(validation.name, shapes.name(), **options)


def description(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is a description or null."""
    return Key(validation.description, shapes.or_null(shapes.text()), **options)


def uuid(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is a UUID."""
    return Key(validation.uuid, shapes.uuid(), **options)


def flag(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is a boolean."""
    return Key(validation.flag, shapes.flag(), **options)


def count(lowest: int = 0, highest: int = 2**31 - 1, **options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is a whole number in a range."""
    return Key(
        lambda value, field: validation.count(value, field, lowest, highest),
        shapes.number(lowest, highest),
        **options,
    )


def limit(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is a limit: a whole number, or -1 for none."""
    return Key(_limit, shapes.number(-1), **options)


def metadata(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is an object of texts."""
    return Key(validation.metadata, shapes.texts(), **options)


def metadata_or_empty() -> Key:
    """Return a key whose value is an object of texts; null and other empty values become an empty one."""
    return Key(lambda value, field: validation.metadata(value or {}, field), shapes.texts())


def address(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is an IPv4 address, which is read as one."""
    return Key(ip_validation.address, ADDRESS, **options)


def cidr(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is a range of IPv4 addresses."""
    return Key(ip_validation.cidr, RANGE, **options)


def interface(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is the name of a network interface of a host."""
    return Key(ip_validation.interface, INTERFACE, **options)


def word(values: Mapping[str, object], refusal: str, **options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is one of the words of `values`, and is read as the value of that word.

    `refusal` may have {field} and {value}.
    """

    def read(value: object, field: str) -> object:
        if not isinstance(value, str) or value not in values:
            raise InvalidInput(refusal.format(field=field, value=str(value)[:40]))
        return values[value]

    return Key(read, shapes.one_of(*values), **options)


def _limit(value: object, field: str) -> int:
    return -1 if value in (-1, "-1") and not isinstance(value, bool) else validation.count(value, field)
