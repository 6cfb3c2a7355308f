"""The HTTP client of child zones: sign-in, deadlines, and children that misbehave."""

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from flask import Flask, Response, jsonify, redirect, request

from climate.compute.zones.client_interface import (
    ChildAnswer,
    ChildError,
    ChildLoop,
    ChildRefused,
    ChildRequest,
    ChildTimeout,
)
from climate.compute.zones.http.client import HttpChildClient
from climate.compute.zones.http.messages import MOST_BYTES
from climate.compute.zones.models import ChildZone, ZoneChain
from tests.compute.zones.in_process_http import Wires
from tests.identity.identity_factory import served

PASSWORD = "correct horse"
ZONE = ChildZone(1, "http://child/compute/v2.1", "parent", PASSWORD)


@dataclass
class Child:
    """An application that plays a child zone, and remembers what it was asked."""

    app: Flask = field(default_factory=lambda: Flask("child"))
    issued: int = 0
    accepted: set[str] = field(default_factory=set)
    seen: list[dict[str, str]] = field(default_factory=list)

    def route(self, path: str, answer: Callable[[], Any]) -> None:
        def view() -> Any:
            if request.headers.get("X-Auth-Token") not in self.accepted:
                return "", 401
            self.seen.append(dict(request.headers))
            return answer()

        self.app.add_url_rule(path, path, view, methods=["GET", "POST"])

    def sign_in(self) -> Response:
        user = request.get_json()["auth"]["identity"]["password"]["user"]
        if user["password"] != PASSWORD:
            return Response(status=401)
        self.issued += 1
        token = f"token-{self.issued}"
        self.accepted.add(token)
        return Response(json.dumps({"token": {}}), 201, {"X-Subject-Token": token})


@pytest.fixture
def child() -> Child:
    made = Child()
    made.app.add_url_rule("/identity/v3/auth/tokens", view_func=made.sign_in, methods=["POST"])
    made.route("/compute/v2.1/zones/info", lambda: jsonify(zone={"name": "child"}))
    return made


def client(child: Child, seconds: float = 20, **others: Any) -> HttpChildClient:
    return HttpChildClient(lambda: "own", seconds, Wires({"child": child.app, **others}))


INFO = ChildRequest("GET", "/zones/info")


def test_answer_is_parsed_and_the_token_is_kept(child: Child) -> None:
    talker = client(child)
    for _ in range(3):
        answer = talker.send(ZONE, INFO)
        assert (answer.status, answer.body) == (200, {"zone": {"name": "child"}})
    assert child.issued == 1


def test_base_url_without_the_path_of_compute_leads_to_the_same_child(child: Child) -> None:
    assert client(child).send(replace(ZONE, api_url="http://child"), INFO).is_good


def test_refused_token_is_fetched_anew(child: Child) -> None:
    talker = client(child)
    talker.send(ZONE, INFO)
    child.accepted.clear()
    assert talker.send(ZONE, INFO).is_good
    assert child.issued == 2


def test_wrong_password_is_refused_without_showing_it(child: Child) -> None:
    with pytest.raises(ChildRefused) as refused:
        client(child).send(replace(ZONE, password="sesame street"), INFO)
    assert "sesame" not in str(refused.value)


def test_account_and_token_of_one_child_reach_no_other_child(child: Child) -> None:
    """Both children accept the same words, so a mistake would go unnoticed by them."""
    other = Child()
    asked: list[dict[str, Any]] = []

    def sign_in() -> Response:
        asked.append(request.get_json()["auth"]["identity"]["password"]["user"])
        return Response(json.dumps({"token": {}}), 201, {"X-Subject-Token": "token-of-other"})

    other.app.add_url_rule("/identity/v3/auth/tokens", view_func=sign_in, methods=["POST"])
    other.accepted.add("token-of-other")
    other.route("/compute/v2.1/zones/info", lambda: jsonify(zone={"name": "other"}))
    talker = client(child, other=other.app)
    second = ChildZone(2, "http://other/compute/v2.1", "second parent", "second password")
    for zone in (ZONE, second, ZONE, second):
        assert talker.send(zone, INFO).is_good
    assert [(user["name"], user["password"]) for user in asked] == [("second parent", "second password")]
    assert {headers["X-Auth-Token"] for headers in other.seen} == {"token-of-other"}
    assert {headers["X-Auth-Token"] for headers in child.seen} == {"token-1"}


def test_changed_password_does_not_use_the_old_token(child: Child) -> None:
    talker = client(child)
    talker.send(ZONE, INFO)
    with pytest.raises(ChildRefused):
        talker.send(replace(ZONE, password="another"), INFO)


def test_statuses_are_passed_on(child: Child) -> None:
    child.route("/compute/v2.1/gone", lambda: (jsonify(itemNotFound={"code": 404}), 404))
    child.route("/compute/v2.1/done", lambda: ("", 204))
    talker = client(child)
    assert talker.send(ZONE, ChildRequest("GET", "/gone")).status == 404
    assert talker.send(ZONE, ChildRequest("POST", "/done", {"os-stop": None})).body is None


def test_chain_and_remaining_time_travel_with_the_request(child: Child) -> None:
    client(child, seconds=100).send(ZONE, replace(INFO, chain=ZoneChain(("top",), 10.0)))
    assert child.seen[-1]["X-Zone-Chain"] == "top,own"
    assert child.seen[-1]["X-Zone-Seconds"] == "7.000"


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (lambda: redirect("http://elsewhere/"), ChildError, "redirects"),
        (lambda: "<html>sesame</html>", ChildError, "not JSON"),
        (lambda: Response(b"x" * (MOST_BYTES + 1)), ChildError, "more than"),
        (lambda: ("[" * 100_000, 200), ChildError, "not JSON"),
        (lambda: '{"weight": NaN}', ChildError, "not JSON"),
        (lambda: f'{{"weight": 1{"0" * 400}}}', ChildError, "not JSON"),
        (lambda: r'{"name": "\ud800"}', ChildError, "not JSON"),
        (lambda: r'{"name": "\u0000"}', ChildError, "not JSON"),
        (lambda: ("", 508), ChildLoop, "leads back"),
        (lambda: ("<html>sesame</html>", 502), ChildError, "HTTP 502"),
    ],
)
def test_unusable_answer_is_an_error(child: Child, answer: Any, error: type[ChildError], text: str) -> None:
    child.route("/compute/v2.1/odd", answer)
    with pytest.raises(error, match=text) as raised:
        client(child, elsewhere=lambda *_: pytest.fail("followed")).send(ZONE, ChildRequest("GET", "/odd"))
    assert "sesame" not in str(raised.value)
    assert PASSWORD not in str(raised.value)


def test_child_that_is_not_there_is_an_error(child: Child) -> None:
    with pytest.raises(ChildError, match="cannot be reached: Connection refused"):
        client(child).send(replace(ZONE, api_url="http://nowhere"), INFO)


@pytest.fixture
def hanging() -> Iterator[Callable[..., Any]]:
    """An application that answers nothing until the test is over."""
    over = threading.Event()

    def application(environ: Any, start_response: Any) -> Any:
        over.wait()
        start_response("503 Over", [])
        return []

    yield application
    over.set()


def test_answer_that_drips_is_late_all_the_same(child: Child) -> None:
    over = threading.Event()

    def drops() -> Iterator[bytes]:
        while not over.is_set():
            over.wait(0.01)
            yield b" "

    child.route("/compute/v2.1/slow", lambda: Response(drops()))
    with served(child.app) as port:
        there = replace(ZONE, api_url=f"http://127.0.0.1:{port}/compute/v2.1")
        talker = HttpChildClient(lambda: "own", 20)
        talker.send(there, INFO)  # the token, so that the short deadline below is for one request
        try:
            with pytest.raises(ChildTimeout, match=r"within 0\.2 s"):
                talker.send(there, ChildRequest("GET", "/slow"), 0.2)
        finally:
            over.set()


def test_child_that_hangs_delays_no_other(child: Child, hanging: Callable[..., Any]) -> None:
    slow = replace(ZONE, id=2, api_url="http://slow")
    talker = client(child, slow=hanging)
    talker.send(ZONE, INFO)  # the token, so that the short deadline below is for one request
    outcomes = talker.send_all([(slow, replace(INFO, chain=ZoneChain((), 0.2))), (ZONE, INFO)])
    assert isinstance(outcomes[0], ChildTimeout)
    assert isinstance(outcomes[1], ChildAnswer)
    assert outcomes[1].is_good


def test_no_secret_in_reprs(child: Child) -> None:
    talker = client(child)
    talker.send(ZONE, INFO)
    assert PASSWORD not in repr(ZONE)
    assert "token-1" not in repr(talker)
