"""Keys that several bodies have: each refuses what its schema excludes, with the name of the key."""

from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from api.compute import common_body_keys as keys
from api.schema.body import Body
from climate.domain.errors import InvalidInput


class All(Body):
    """One key of each kind."""

    PREFIX = "all."

    name = keys.name(default="n")
    description = keys.description()
    uuid = keys.uuid().or_null()
    flag = keys.flag(default=False)
    count = keys.count(1, 3, default=1)
    limit = keys.limit(default=-1)
    metadata = keys.metadata(default={})
    address = keys.address().or_null()
    cidr = keys.cidr().or_null()
    interface = keys.interface()
    word = keys.word({"on": 1, "off": 0}, "{field}: not {value!r}", default="off")


ALL = All()


def test_values_are_read_into_types() -> None:
    found = ALL.read({"flag": "yes", "count": "2", "limit": "-1", "address": "10.0.0.1", "cidr": "10.0.0.0/8"})
    assert (found["flag"], found["count"], found["limit"], found["word"]) == (True, 2, -1, 0)
    assert (found["address"], found["cidr"]) == (IPv4Address("10.0.0.1"), IPv4Network("10.0.0.0/8"))


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("name", None, "all.name must be a text of 1 to 255"),
        ("description", 5, "all.description must be a text of at most 255"),
        ("uuid", "x", "all.uuid must be a UUID"),
        ("flag", "maybe", "all.flag must be true or false, not 'maybe'"),
        ("count", 4, "all.count must be a whole number from 1 to 3"),
        ("limit", -2, "all.limit must be a whole number from 0"),
        ("limit", True, "all.limit must be a whole number from 0"),
        ("metadata", [], "all.metadata must be an object"),
        ("address", "fd00::1", "all.address must be an IPv4 address"),
        ("cidr", "10.0.0.1/8", "all.cidr must be an IPv4 range"),
        ("interface", "a b", "all.interface must be the name of an interface"),
        ("word", [], "all.word: not '[]'"),
    ],
)
def test_refusal_names_the_key(key: str, value: Any, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        ALL.read({key: value})
    assert str(refused.value).startswith(says)
