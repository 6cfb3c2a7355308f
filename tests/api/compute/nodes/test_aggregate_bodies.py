"""Bodies of aggregates: what their actions read, and refuse."""

import pytest

from api.compute.nodes import aggregate_bodies as bodies
from climate.domain.errors import InvalidInput


def test_metadata_of_an_aggregate_may_be_null() -> None:
    given = {"set_metadata": {"metadata": {"a": "b", "c": None}}}
    assert bodies.AGGREGATE_ACTIONS.read(given) == ("set_metadata", {"metadata": {"a": "b", "c": None}})
    with pytest.raises(InvalidInput, match=r"^metadata must be an object of texts; null deletes a key"):
        bodies.AGGREGATE_ACTIONS.read({"set_metadata": {}})
