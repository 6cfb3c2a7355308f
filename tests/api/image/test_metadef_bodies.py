"""Bodies of metadata definitions that are refused."""

from typing import Any

import pytest

from api.image import metadef_bodies as bodies
from climate.compute.models.metadef import MOST, OBJECTS, PROPERTIES, TAGS
from climate.domain.errors import InvalidInput

COLOR = {"name": "color", "title": "Color", "type": "string"}

WRONG: list[tuple[str, dict[str, Any], str]] = [
    (PROPERTIES, {"name": "color", "type": "string"}, "title"),
    (PROPERTIES, COLOR | {"type": "colour"}, "type must be one of array"),
    (PROPERTIES, COLOR | {"enum": "red"}, "enum must be a list of at most 1000 values"),
    (PROPERTIES, COLOR | {"enum": [{}]}, "enum must be a list"),
    (PROPERTIES, COLOR | {"operators": [1]}, "operators must be a list of at most 1000 texts"),
    (PROPERTIES, COLOR | {"minimum": "1"}, "minimum must be a number"),
    (PROPERTIES, COLOR | {"minLength": -1}, "minLength must be a whole number"),
    (PROPERTIES, COLOR | {"items": []}, "items must be an object"),
    (PROPERTIES, COLOR | {"shade": 1}, "Unknown key shade"),
    (PROPERTIES, COLOR | {"name": "a/b"}, "without '/'"),
    (PROPERTIES, COLOR | {"description": "x" * 4097}, "at most 4096"),
    (OBJECTS, {"name": "coat", "properties": {"color": {"type": "string"}}}, "title"),
    (OBJECTS, {"name": "coat", "properties": []}, "properties must be an object"),
    (OBJECTS, {}, "name"),
    (TAGS, {"name": " "}, "name"),
]


@pytest.mark.parametrize(("kind", "body", "refusal"), WRONG)
def test_a_wrong_part_is_refused(kind: str, body: dict[str, Any], refusal: str) -> None:
    with pytest.raises(InvalidInput, match=refusal):
        bodies.part(kind, body)


def test_a_list_has_each_name_once() -> None:
    assert list(bodies.parts(TAGS, [{"name": "a"}, {"name": "b"}], "tags")) == ["a", "b"]
    with pytest.raises(InvalidInput, match="each name once"):
        bodies.parts(TAGS, [{"name": "a"}, {"name": "a"}], "tags")
    with pytest.raises(InvalidInput, match="list of objects"):
        bodies.parts(TAGS, ["a"], "tags")


def test_a_namespace_is_private_unless_it_is_public() -> None:
    assert bodies.NEW.read({"namespace": "n"}) == {"namespace": "n", "visibility": "private"}
    assert bodies.CHANGED.read({"namespace": "n", "self": "ignored"}) == {"namespace": "n"}
    with pytest.raises(InvalidInput, match="public, private"):
        bodies.NEW.read({"namespace": "n", "visibility": "shared"})
    with pytest.raises(InvalidInput, match="at most 1000"):
        bodies.NEW.read({"namespace": "n", "properties": {f"p{place}": {} for place in range(MOST + 1)}})
