"""Schemas of bodies: keys, refusals, and the JSON schema that the document shows."""

from typing import Any

import pytest

from api.schema.body import ABSENT, Below, Body, Choice, Ignored, Key, as_given, part
from climate.domain.errors import InvalidInput


def number(value: Any, field: str) -> int:
    if not isinstance(value, int):
        raise InvalidInput(f"{field} must be a number")
    return value


def number_key(**options: Any) -> Key:
    return Key(number, {"type": "integer"}, **options)


class Small(Body):
    """Size of a thing.

    Not shown.
    """

    UNKNOWN = "size: {first!r} of {unknown} is not of {known}"
    MISSING = "size: {missing} must be given"
    EMPTY = "size must have a key"
    PREFIX = "size."

    width = number_key(required=True)
    height_cm = number_key(key="height", default=1)
    depth = number_key(default=ABSENT).or_null()
    colour = Ignored({"type": "string"})


class Open(Body):
    """Thing with a size."""

    IS_OPEN = IS_NULLABLE = True

    size = part(Small(), default=ABSENT)
    note = Key(as_given, {})


SMALL, OPEN = Small(), Open()


def refusal(body: Body | Below | Choice, given: dict[str, Any]) -> str:
    with pytest.raises(InvalidInput) as refused:
        body.read(given)
    return str(refused.value)


def test_values_have_the_names_of_attributes_and_their_defaults() -> None:
    assert SMALL.read({"width": 2, "colour": 5}) == {"width": 2, "height_cm": 1}
    assert SMALL.read({"width": 2, "height": 3, "depth": None}) == {"width": 2, "height_cm": 3, "depth": None}
    assert OPEN.read({"size": {"width": 2}, "other": 1}) == {"size": {"width": 2, "height_cm": 1}, "note": None}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "size must have a key"),
        ({"height": 1}, "size: width must be given"),
        ({"width": 1, "b": 1, "a": 1}, "size: 'a' of a, b is not of width, height, depth"),
        ({"width": "x", "height": "y"}, "size.width must be a number"),
        ({"width": 1, "height": None}, "size.height must be a number"),
    ],
)
def test_first_refusal_names_the_key(given: dict[str, Any], says: str) -> None:
    assert refusal(SMALL, given) == says


def test_document_has_what_is_read() -> None:
    assert SMALL.shape() == {
        "type": "object",
        "description": "Size of a thing.",
        "properties": {
            "width": {"type": "integer"},
            "height": {"type": "integer"},
            "depth": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "colour": {"type": "string"},
        },
        "required": ["width"],
        "additionalProperties": False,
        "minProperties": 1,
    }
    whole, null = OPEN.shape()["anyOf"]
    assert null == {"type": "null"}
    assert "additionalProperties" not in whole
    assert whole["properties"]["size"] == SMALL.shape()


def test_null_stands_for_an_object_only_where_the_body_says_so() -> None:
    assert OPEN.read_value(None, "thing") == {"note": None}
    with pytest.raises(InvalidInput, match=r"^size must be an object$"):
        SMALL.read_value(None, "size")


def test_a_prefix_of_its_own_replaces_that_of_the_class() -> None:
    assert refusal(Small("box."), {"width": "x"}) == "box.width must be a number"


def test_key_beside_the_content_is_refused_unless_the_body_is_open() -> None:
    given = {"size": {"width": 1}, "more": 1}
    assert refusal(Below("size", SMALL), given) == "The body must have the key size alone, not 'more'"
    assert Below("size", SMALL, is_open=True).read(given) == {"width": 1, "height_cm": 1}
    assert refusal(Below("size", SMALL), {}) == "size must be an object"


def test_choice_has_exactly_one_key() -> None:
    choice = Choice({"grow": SMALL, "vanish": None}, "grow or vanish")
    assert choice.read({"grow": {"width": 1}}) == ("grow", {"width": 1, "height_cm": 1})
    assert choice.read({"vanish": None}) == ("vanish", {})
    for given in ({}, {"grow": {}, "vanish": None}, {"shrink": 1}):
        assert refusal(choice, given) == "grow or vanish"
    assert [list(form["properties"]) for form in choice.shape()["anyOf"]] == [["grow"], ["vanish"]]
