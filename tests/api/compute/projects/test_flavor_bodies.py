"""Bodies of flavors beside their creation: descriptions, extra specs and access."""

from typing import Any

import pytest

from api.compute.projects import flavor_bodies as bodies
from climate.domain.errors import InvalidInput


def test_extra_specs_are_texts() -> None:
    assert bodies.EXTRA_SPECS.read({"extra_specs": {"a:b": 1, "c": "x"}}) == {"extra_specs": {"a:b": "1", "c": "x"}}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "extra_specs must be an object with at least one key"),
        ({"a/b": "1"}, "extra_specs: the key 'a/b' may hold letters"),
        ({"a": True}, "extra_specs: keys and values must be texts"),
    ],
)
def test_refused_extra_specs(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        bodies.EXTRA_SPECS.read({"extra_specs": given})
    assert str(refused.value).startswith(says)


def test_description_must_be_given_alone() -> None:
    assert bodies.DESCRIBED.read({"flavor": {"description": None}}) == {"description": None}
    for flavor in ({}, {"description": "d", "name": "n"}):
        with pytest.raises(InvalidInput, match=r"^flavor must hold description, and nothing else"):
            bodies.DESCRIBED.read({"flavor": flavor})


def test_access_names_one_project() -> None:
    assert bodies.ACCESS.read({"addTenantAccess": {"tenant": "p"}}) == ("addTenantAccess", {"tenant": "p"})
    with pytest.raises(InvalidInput, match=r"^The body must hold addTenantAccess or removeTenantAccess"):
        bodies.ACCESS.read({"add": {"tenant": "p"}})
