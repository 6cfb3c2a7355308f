"""The web server's own answers are JSON with a status, a cause and what would be right."""

import io
import json
import logging
import socket
from http import HTTPStatus

import pytest
from gunicorn.http import errors

from climate.web.error_answers import LATE, LONGEST_MESSAGE, RefusesInJson, answer, status_of


class Worker(RefusesInJson):
    """A worker that only refuses."""

    def __init__(self) -> None:
        self.said = io.StringIO()
        self.log = logging.Logger("refusals")
        self.log.addHandler(logging.StreamHandler(self.said))


def refused(error: Exception, worker: Worker | None = None) -> tuple[str, dict[str, object]]:
    """Return the status line and the error of the body that a client receives."""
    near, far = socket.socketpair()
    with near, far:
        (worker or Worker()).handle_error(None, near, ("192.0.2.1", 1), error)
        near.close()
        head, _, body = far.makefile("rb").read().partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert "Content-Type: application/json" in lines
    assert f"Content-Length: {len(body)}" in lines
    return lines[0], json.loads(body)["error"]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (errors.InvalidRequestMethod("G(T"), "HTTP/1.1 400 Bad Request"),
        (errors.InvalidHeaderName("Bad Header"), "HTTP/1.1 400 Bad Request"),
        (errors.InvalidChunkSize(b"zz"), "HTTP/1.1 400 Bad Request"),
        (errors.LimitRequestLine(9000, 4094), f"HTTP/1.1 414 {HTTPStatus(414).phrase}"),
        (errors.LimitRequestHeaders("too many"), "HTTP/1.1 431 Request Header Fields Too Large"),
        (errors.UnsupportedTransferCoding("foo"), "HTTP/1.1 501 Not Implemented"),
        (errors.ExpectationFailed("pie"), "HTTP/1.1 417 Expectation Failed"),
    ],
)
def test_an_invalid_request_is_refused_with_its_cause(error: Exception, line: str) -> None:
    found, body = refused(error)
    assert found == line
    assert body["code"] == int(line.split()[1])
    assert str(body["message"]).startswith(str(error))


def test_a_failure_of_the_application_is_logged_and_told_without_details() -> None:
    worker = Worker()
    line, body = refused(ValueError("the secret"), worker)
    assert line == "HTTP/1.1 500 Internal Server Error"
    assert "secret" not in str(body)
    assert "the secret" in worker.said.getvalue()
    assert status_of(errors.InvalidResponseHeader("x")) == 500


def test_the_message_says_what_would_be_right_and_is_short() -> None:
    assert b"Content-Length" in answer(501, "Unsupported")
    assert b"within a minute" in answer(408, LATE)
    body = answer(400, "é" * 5000).partition(b"\r\n\r\n")[2]
    assert len(json.loads(body)["error"]["message"]) == LONGEST_MESSAGE


def test_a_client_that_is_gone_disturbs_nobody() -> None:
    near, far = socket.socketpair()
    far.close()
    with near:
        Worker().handle_error(None, near, None, errors.InvalidHTTPVersion((9, 9)))
