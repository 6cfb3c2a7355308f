"""No body gets past the reader that would surprise the verbs behind it."""

import io
import json
import socket
from contextlib import suppress
from threading import Event, Thread
from typing import Any
from wsgiref.simple_server import make_server

import pytest
from flask import Flask
from gunicorn.http.body import Body, ChunkedReader
from gunicorn.http.unreader import IterUnreader
from hypothesis import given
from hypothesis import strategies as st

from api.body import LONGEST, parse
from climate.domain.errors import InvalidInput
from climate.strict_json import DEEPEST
from tests.api.echo_views import APIS
from tests.identity.identity_factory import Asker

ECHO = "/reservation/v1/echo"


def post(asker: Asker, data: bytes | str, kind: str | None = "application/json", path: str = ECHO) -> Any:
    return asker.ask("POST", path, data=data, **({"content_type": kind} if kind else {}))


def nested(levels: int, opening: str = "[", closing: str = "]") -> str:
    return '{"a":' + opening * levels + "1" + closing * levels + "}"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        ("{", "not JSON"),
        ("{'a': 1}", "not JSON"),
        ('{"a": 1} x', "not JSON"),
        ("[]", "a list"),
        ('"text"', "a text"),
        ("5", "a number"),
        ("true", "a truth value"),
        ("null", "null"),
        (nested(1000), "nested"),
        (nested(100_000), "nested"),
        (nested(400_000, '{"a":', "}")[:900_000], "nested"),
        (nested(DEEPEST), "nested"),
        ('{"a": 1, "b": 2, "a": 3}', "'a' stands twice"),
        ('{"x": {"a": 1, "a": 1}}', "'a' stands twice"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": 1e400}', "1e400"),
        ('{"a": 9223372036854775808}', "too long"),
        ('{"a": -' + "9" * 10_000 + "}", "too long"),
        ('{"a": "x\\u0000y"}', "U+0000"),
        ('{"x\\u0000y": 1}', "U+0000"),
        ('{"a": ["\\ud800"]}', "surrogate"),
        ('{"\\udfff": 1}', "surrogate"),
        (b'{"a": "\xff"}', "not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "not UTF-8"),
        (b'\xef\xbb\xbf{"a": 1}', "not JSON"),
    ],
)
def test_what_is_refused_and_why(demo: Asker, data: bytes | str, says: str) -> None:
    answer = post(demo, data)
    assert answer.status_code == 400
    assert says in answer.json["error_message"]
    assert answer.json["error_code"] == answer.json["error_name"] == 400


@pytest.mark.parametrize(
    "body",
    [
        {"a": nested(DEEPEST - 1)},
        {"a": 10**18 - 1, "b": -(10**18 - 1), "c": 1.5, "d": None, "e": True},
        {"name": "مرحبا \u200f👩‍🔬", "👩‍🔬": "\U0001f600"},
        {},
    ],
)
def test_what_is_kept_faithfully(demo: Asker, body: dict[str, Any]) -> None:
    assert post(demo, json.dumps(body)).json["echo"] == body
    assert post(demo, json.dumps(body, ensure_ascii=False)).json["echo"] == body


def test_as_deep_as_is_allowed(demo: Asker) -> None:
    assert post(demo, nested(DEEPEST - 1)).status_code == 200


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "application/x-www-form-urlencoded", "x", None])
def test_another_content_type_is_415(demo: Asker, kind: str | None) -> None:
    answer = post(demo, '{"a": 1}', kind)
    assert (answer.status_code, answer.json["error"]) == (415, 415)
    assert "application/json" in answer.json["error_message"]


def test_a_charset_beside_the_content_type_is_fine(demo: Asker) -> None:
    assert post(demo, '{"a": 1}', "application/json; charset=UTF-8").status_code == 200


@pytest.mark.parametrize("path", APIS.values())
def test_too_large_a_body_is_413_in_every_api(demo: Asker, path: str) -> None:
    assert post(demo, b'{"a": "' + b"x" * (LONGEST - 9) + b'"}', path=f"{path}/echo").status_code == 200
    assert post(demo, b'{"a": "' + b"x" * LONGEST + b'"}', path=f"{path}/echo").status_code == 413


def test_a_client_that_sends_too_much_gets_to_see_the_answer(app: Flask, demo: Asker) -> None:
    size = 12 * LONGEST
    head = f"POST {ECHO} HTTP/1.0\r\nX-Auth-Token: {demo.token}\r\nContent-Type: application/json\r\n"
    with make_server("127.0.0.1", 0, app) as server:
        thread = Thread(target=server.handle_request)
        thread.start()
        with socket.create_connection(server.server_address) as client:
            client.sendall(f"{head}Content-Length: {size}\r\n\r\n".encode() + b" " * size)
            assert b" 413 " in client.makefile("rb").readline()
        thread.join()


def test_a_client_that_sends_too_much_slowly_is_not_waited_for(demo: Asker) -> None:
    class Slow(io.RawIOBase):
        given = 0

        def read(self, size: int = -1, /) -> bytes:
            self.given += 1
            Event().wait(0.25)
            return b" "

    slow = Slow()
    sent = {"wsgi.input": slow, "CONTENT_LENGTH": str(12 * LONGEST), "CONTENT_TYPE": "application/json"}
    assert demo.ask("POST", ECHO, environ_overrides=sent).status_code == 413
    assert slow.given < 12


def test_a_body_in_pieces_has_the_same_limit(demo: Asker) -> None:
    def in_pieces(size: int) -> int:
        data = io.BytesIO(b'{"a": "' + b"x" * (size - 9) + b'"}')
        terminated = {"wsgi.input": data, "wsgi.input_terminated": True, "CONTENT_TYPE": "application/json"}
        return demo.ask("POST", ECHO, environ_overrides=terminated).status_code

    assert [in_pieces(size) for size in (100, LONGEST - 1, LONGEST + 1, 3 * LONGEST)] == [200, 200, 413, 413]


@pytest.mark.parametrize("sent", [b"zz\r\n{}\r\n0\r\n\r\n", b"2\r\n{}xx0\r\n\r\n", b"2\r\n{}\r\n0\r\n", b"40\r\n{}"])
def test_a_body_in_wrong_pieces_is_400(demo: Asker, sent: bytes) -> None:
    pieces = Body(ChunkedReader(None, IterUnreader(iter([sent]))))
    terminated = {"wsgi.input": pieces, "wsgi.input_terminated": True, "CONTENT_TYPE": "application/json"}
    answer = demo.ask("POST", ECHO, environ_overrides=terminated)
    assert answer.status_code == 400


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(values)
def test_every_value_comes_back_as_it_was_or_is_refused(value: Any) -> None:
    try:
        assert parse(json.dumps(value).encode()) == value
    except InvalidInput:
        text = json.dumps(value)
        assert any(sign in text for sign in ("NaN", "Infinity", "\\u0000", "\\ud")) or len(text) > 18


@given(st.binary() | st.text(alphabet='{}[]":,0123456789.eE+-\\u tfn').map(str.encode))
def test_no_bytes_do_worse_than_be_refused(data: bytes) -> None:
    with suppress(InvalidInput):
        parse(data)
