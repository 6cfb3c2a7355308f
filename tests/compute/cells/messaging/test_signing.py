"""Signed envelopes: what is forged, foreign, old or malformed is refused and logged."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from climate.compute.cells import neighbours
from climate.compute.cells.errors import BadMessage
from climate.compute.cells.messaging import inbox, messages, outbox, send, signing
from climate.compute.cells.messaging.dispatch import CellContext, Handlers
from climate.compute.cells.messaging.messages import DOWN, UP, Message
from climate.compute.cells.messaging.signing import Letter
from tests.compute.cells.tree import Tree, secret_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LETTER = Letter("top", str(uuid4()), "targeted", "{}")
KEY = "a secret of sixteen letters"


def sealed(now: datetime = NOW, secret: str = KEY) -> dict[str, Any]:
    return signing.seal(secret, ("top", "right"), LETTER, now)


def test_letter_is_opened_by_its_receiver() -> None:
    assert signing.opened(KEY, "right", sealed(), NOW) == LETTER


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sender", "left"),
        ("sent_at", "2030-01-01T00:00:01+00:00"),
        ("delivery", "00000000-0000-4000-8000-000000000000"),
        ("kind", "broadcast"),
        ("body", "[]"),
        ("signature", "0" * 64),
        ("signature", "é"),
        ("signature", ""),
    ],
)
def test_changed_envelope_is_refused(field: str, value: str) -> None:
    with pytest.raises(BadMessage, match="signature is wrong"):
        signing.opened(KEY, "right", {**sealed(), field: value}, NOW)


def test_envelope_for_another_cell_is_refused() -> None:
    with pytest.raises(BadMessage, match="for another cell"):
        signing.opened(KEY, "left", sealed(), NOW)


def test_other_secret_is_refused() -> None:
    with pytest.raises(BadMessage, match="signature is wrong"):
        signing.opened(KEY, "right", sealed(secret="another secret, as long"), NOW)


@pytest.mark.parametrize("secret", [None, ""])
def test_sender_without_a_secret_is_refused(secret: str | None) -> None:
    with pytest.raises(BadMessage, match="no secret"):
        signing.opened(secret, "right", sealed(secret=secret or ""), NOW)


@pytest.mark.parametrize("seconds", [-signing.LIFE - 1, signing.LIFE + 1])
def test_old_and_early_envelopes_are_refused(seconds: float) -> None:
    with pytest.raises(BadMessage, match="older than 600 s"):
        signing.opened(KEY, "right", sealed(NOW + timedelta(seconds=seconds)), NOW)


@pytest.mark.parametrize("envelope", [None, [], "x", 7, {}, {"sender": "top"}, {"sender": 1}])
def test_no_envelope_is_refused(envelope: object) -> None:
    with pytest.raises(BadMessage, match="malformed"):
        signing.sender_of(envelope)


class Calls:
    def __init__(self) -> None:
        self.paths: list[str] = []

    def note(self, context: CellContext, message: Message, kwargs: Mapping[str, Any]) -> None:
        self.paths.append(message.routing_path)


@pytest.fixture
def calls(cells: Tree) -> Calls:
    found = Calls()
    cells.handlers = Handlers({"note": found.note}, {"note": found.note}, frozenset({"note"}))
    return found


def receive(cells: Tree, name: str, envelope: object) -> int:
    return inbox.receive(cells[name], cells.transport, [envelope])


def enveloped(cells: Tree, message: Message, ends: tuple[str, str], secret: str) -> dict[str, Any]:
    with cells["top"].engine.connect() as conn:
        now = cells["top"].now(conn)
    return signing.seal(secret, ends, Letter(ends[0], str(uuid4()), message.type, message.to_json()), now)


def down(path: str = "top") -> Message:
    message = messages.broadcast("top", "note", {}, DOWN, 10)
    return replace(message, routing_path=path, hop_count=path.count("!") + 1)


LOGGED = "message refused"


def test_forged_message_is_refused_and_logged(cells: Tree, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert receive(cells, "left", enveloped(cells, down(), ("top", "left"), "no such secret at all")) == 0
    cells.settle()
    assert calls.paths == []
    said = capsys.readouterr().out
    assert LOGGED in said
    assert "The signature is wrong" in said


def test_stranger_is_refused(cells: Tree, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    assert receive(cells, "left", enveloped(cells, down(), ("right", "left"), secret_of("top", "right"))) == 0
    assert "Its sender is not a neighbour" in capsys.readouterr().out


def test_child_cannot_speak_for_its_sibling(cells: Tree, calls: Calls) -> None:
    """The left cell knows its own secret only, and may sign only as itself."""
    message = messages.broadcast("right", "note", {}, UP, 10)
    assert receive(cells, "top", enveloped(cells, message, ("left", "top"), secret_of("top", "left"))) == 0
    assert receive(cells, "top", enveloped(cells, message, ("right", "top"), secret_of("top", "left"))) == 0
    assert calls.paths == []


def test_child_cannot_send_down(cells: Tree, calls: Calls) -> None:
    message = messages.broadcast("left", "note", {}, DOWN, 10)
    assert receive(cells, "top", enveloped(cells, message, ("left", "top"), secret_of("top", "left"))) == 0


def test_replayed_message_is_processed_once(cells: Tree, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    envelope = enveloped(cells, down(), ("top", "left"), secret_of("top", "left"))
    assert [receive(cells, "left", envelope) for _ in range(3)] == [1, 0, 0]
    cells.settle()
    assert receive(cells, "left", envelope) == 0
    cells.settle()
    assert calls.paths == ["top!left"]
    assert "duplicate message of a cell" in capsys.readouterr().out


def test_message_of_another_link_is_refused(cells: Tree, calls: Calls) -> None:
    """The left cell refuses an envelope that the top sent to the right one."""
    with cells["top"].engine.begin() as conn:
        send.cast(cells["top"], conn, "right", "note", {})
    outbox.send(cells["top"], cells.transport, "right")
    (envelope,) = cells.transport.receive("right")
    assert receive(cells, "left", envelope) == 0
    assert receive(cells, "right", envelope) == 1


@pytest.mark.parametrize("body", ["", "{}", "[]", '{"message_type": "targeted"}'])
def test_signed_nonsense_is_confirmed_and_dropped(cells: Tree, calls: Calls, body: str) -> None:
    with cells["top"].engine.connect() as conn:
        now = cells["top"].now(conn)
    letter = Letter("top", str(uuid4()), "targeted", body)
    assert receive(cells, "left", signing.seal(secret_of("top", "left"), ("top", "left"), letter, now)) == 0
    assert len(cells.transport.receive("top")) == 1


@pytest.mark.parametrize("value", ["NaN", r'"\ud800"', '"\ud800"', r'"\u0000"', "1e999"])
def test_signed_values_that_nothing_can_store_stop_no_other_message(cells: Tree, calls: Calls, value: str) -> None:
    fine = enveloped(cells, down(), ("top", "left"), secret_of("top", "left"))
    body = down().to_json().replace('"method_kwargs":{}', f'"method_kwargs":{{"a":{value}}}')
    assert value in body
    letter = Letter("top", str(uuid4()), "broadcast", body)
    with cells["top"].engine.connect() as conn:
        odd = signing.seal(secret_of("top", "left"), ("top", "left"), letter, cells["top"].now(conn))
    assert inbox.receive(cells["left"], cells.transport, [odd, fine]) == 1
    cells.settle()
    assert calls.paths == ["top!left"]


@pytest.mark.parametrize("field", ["sender", "receiver", "delivery", "kind", "sent_at", "signature", "body"])
def test_envelope_that_no_log_can_hold_stops_no_other_message(
    cells: Tree, calls: Calls, capsys: pytest.CaptureFixture[str], field: str
) -> None:
    fine = enveloped(cells, down(), ("top", "left"), secret_of("top", "left"))
    odd = {**fine, field: "\ud800\x1b[2J"}
    assert inbox.receive(cells["left"], cells.transport, [odd, fine]) == 1
    said = capsys.readouterr().out
    assert LOGGED in said
    assert "\x1b[2J" not in said


@pytest.mark.parametrize("body", ["[" * 10**5, "{}", "7", '["x"]', '[["x"]]', "nonsense", ""])
def test_confirmation_that_names_no_deliveries_stops_no_other_message(cells: Tree, calls: Calls, body: str) -> None:
    fine = enveloped(cells, down(), ("top", "left"), secret_of("top", "left"))
    letter = Letter("top", str(uuid4()), signing.CONFIRMATION, body)
    with cells["top"].engine.connect() as conn:
        odd = signing.seal(secret_of("top", "left"), ("top", "left"), letter, cells["top"].now(conn))
    assert inbox.receive(cells["left"], cells.transport, [odd, fine]) == 1


def test_message_that_grows_too_large_on_the_way_is_dropped_with_a_word(
    cells: Tree, calls: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its letters were not escaped as they are when it is written again."""
    whole = messages.targeted("top", "top!right!leaf", "note", {}, DOWN, 10).to_json()
    body = whole.replace('"method_kwargs":{}', f'"method_kwargs":{{"a":"{"é" * (messages.LARGEST // 2)}"}}')
    with cells["top"].engine.connect() as conn:
        letter = Letter("top", str(uuid4()), "targeted", body)
        grown = signing.seal(secret_of("top", "right"), ("top", "right"), letter, cells["top"].now(conn))
    assert inbox.receive(cells["right"], cells.transport, [grown]) == 1
    cells.settle()
    assert cells.places["leaf"].count("compute_cell_inbox") == 0
    assert "message not forwarded" in capsys.readouterr().out


def test_secrets_are_in_no_message_log_or_repr(cells: Tree, calls: Calls, capsys: pytest.CaptureFixture[str]) -> None:
    with cells["top"].engine.begin() as conn:
        send.broadcast(cells["top"], conn, DOWN, "note", {})
    for name in ("left", "right"):
        outbox.send(cells["top"], cells.transport, name)
    waiting = str(dict(cells.transport.queues))
    cells.settle()
    with cells["top"].engine.connect() as conn:
        shown = repr(neighbours.with_secrets(cells["top"], conn, "left", "right"))
    for told in (waiting, shown, capsys.readouterr().out):
        assert "secret of" not in told
