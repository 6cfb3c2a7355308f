"""Messages and their JSON form."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from climate.compute.cells.errors import BadMessage, CellError, decode, encode
from climate.compute.cells.messaging import messages
from climate.compute.cells.messaging.messages import DOWN, UP, Response
from climate.compute.errors import NoImageRoom, NotFound, NoValidHost


def targeted() -> messages.Message:
    return messages.targeted("top", "top!child", "look", {"a": [1, "ü"]}, DOWN, 10).answered()


def test_json_form_is_read_back() -> None:
    message = targeted()
    assert messages.from_json(message.to_json()) == message
    spread = messages.broadcast("child", "told", {}, UP, 3)
    assert messages.from_json(spread.to_json()) == spread
    back = messages.response_to(message.arrived("child", 10), Response("child!top", 7))
    assert messages.from_json(back.to_json()) == back
    assert (back.target_cell, back.routing_path, back.direction) == ("child!top", "child", UP)


@pytest.mark.parametrize(
    "change",
    [
        {"message_type": "other"},
        {"message_type": None},
        {"message_type": ["targeted"]},
        {"method_name": 1},
        {"method_kwargs": []},
        {"direction": "sideways"},
        {"direction": {}},
        {"need_response": "yes"},
        {"uuid": "1"},
        {"routing_path": "a!!b"},
        {"hop_count": 7},
        {"hop_count": 0},
        {"hop_count": True},
        {"max_hop_count": 10**9},
        {"target_cell": None},
        {"target_cell": "a.b"},
    ],
)
def test_malformed_message_is_refused(change: Mapping[str, Any]) -> None:
    given = json.loads(targeted().to_json()) | change
    with pytest.raises(BadMessage, match=f"unusable {next(iter(change))}"):
        messages.from_json(json.dumps(given))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 10**5, '"x"', "{}", " " * (messages.READ_AT_MOST + 1)])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(BadMessage):
        messages.from_json(text)


@pytest.mark.parametrize("value", ["NaN", "1e400", "9" * 30, r'"\ud800"', r'"\u0000"', '{"b": 1, "b": 2}', '"\ud800"'])
def test_values_that_nothing_can_store_are_refused(value: str) -> None:
    text = targeted().to_json().replace('"a":[1,', f'"a":[{value},')
    with pytest.raises(BadMessage, match="The message"):
        messages.from_json(text)


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan"), "x" * messages.LARGEST, "\0", "\ud800"])
def test_arguments_that_cannot_be_sent_are_refused(value: object) -> None:
    with pytest.raises(BadMessage):
        messages.broadcast("top", "look", {"value": value}, DOWN, 1).to_json()


def test_allowed_error_crosses_as_its_class() -> None:
    assert encode(NotFound("no such server"), "top!child") == {"type": "NotFound", "message": "no such server"}
    error = decode({"type": "NotFound", "message": "no such server"}, "top!child")
    assert (type(error), str(error)) == (NotFound, "no such server")


def test_a_full_store_of_images_crosses_as_such() -> None:
    error = decode(encode(NoImageRoom("9 of 10 MB are taken"), "top!child"), "top!child")
    assert (type(error), str(error)) == (NoImageRoom, "9 of 10 MB are taken")


def test_subclass_crosses_as_its_nearest_allowed_class() -> None:
    class Special(NoValidHost):
        pass

    assert encode(Special("none"), "top")["type"] == "NoValidHost"


def test_unexpected_error_loses_its_text() -> None:
    failure = encode(ValueError("password=secret"), "top!child")
    assert failure == {"type": "CellError", "message": "The request failed in cell top!child."}


@pytest.mark.parametrize("kind", ["SystemExit", "os.system", "NotThere", None, 3])
def test_foreign_error_class_becomes_a_cell_error(kind: object) -> None:
    assert type(decode({"type": kind, "message": "x"}, "top!child")) is CellError
