"""No secret reaches a log, whatever way it takes; and one line stays one line."""

import io
import json
import logging

import pytest
import structlog

from climate import log_setup
from climate.log_setup import without_secrets
from climate.outbound import http_client
from climate.outbound.http_client import PostRequest
from tests.identity.identity_factory import Asker, Place, password_body
from tests.webhook_receiver import receiving

CANARY = "canary-5f0c7b"


def test_canaries_in_every_place_of_a_request(here: Place, demo: Asker, log: io.StringIO) -> None:
    demo.ask("POST", "/identity/v3/auth/tokens", json=password_body("demo", CANARY))
    demo.ask("POST", "/v1/echo", json={"password": CANARY}, headers={"X-Auth-Token": CANARY})
    demo.ask("GET", f"/v1/fail/Strange?token={CANARY}", headers={"Cookie": f"session={CANARY}"})
    demo.ask("POST", "/v1/echo", data=CANARY, content_type="text/plain")
    demo.ask("GET", f"/v1/sql/SELECT '{CANARY}x'::int"[:4] + "/x")
    assert log.getvalue().count("\n") >= 5
    assert CANARY not in log.getvalue()
    assert demo.token not in log.getvalue()
    assert here.password("admin") not in log.getvalue()


@pytest.mark.parametrize(
    "fields",
    [
        {"password": CANARY},
        {"db_dsn": CANARY},
        {"headers": {"X-Auth-Token": CANARY, "Cookie": CANARY, "Authorization": CANARY}},
        {"deep": [{"inner": ({"secret_hash": CANARY},)}]},
        {"url": f"postgresql://climate:{CANARY}@127.0.0.1/climate"},
        {"url": f"redis://:{CANARY}@127.0.0.1:6379/0"},
        {"text": f"password={CANARY} and more"},
        {"text": f'{{"password": "{CANARY}"}}'},
        {"text": f"X-Auth-Token: {CANARY}"},
        {"text": f"Authorization: Basic {CANARY}"},
        {"text": f"{{'adminPass': 1, 'secret': '{CANARY}'}}"},
        {"api_key": CANARY},
    ],
)
@pytest.mark.parametrize("form", ["json", "console"])
def test_canaries_in_fields(log: io.StringIO, fields: dict[str, object], form: str) -> None:
    log_setup.configure(form, "DEBUG", log)
    structlog.get_logger("test").info("event", **fields)
    assert "event" in log.getvalue()
    assert CANARY not in log.getvalue()


def test_canaries_in_logs_of_libraries_and_in_tracebacks(log: io.StringIO) -> None:
    logging.getLogger("library").warning("connecting to %s", f"redis://:{CANARY}@127.0.0.1")
    try:
        raise ValueError(f"cannot use secret={CANARY}")
    except ValueError:
        logging.getLogger("library").exception("it failed")
        structlog.get_logger("ours").exception("it failed")
    assert log.getvalue().count("it failed") == 2
    assert CANARY not in log.getvalue()


def test_tokens_are_known_by_their_look(demo: Asker) -> None:
    assert demo.token not in without_secrets(f"someone sent {demo.token} in a text")


def test_harmless_words_stay(log: io.StringIO) -> None:
    structlog.get_logger("test").info("event", lease_id="5", keypair_count=3, project="p", attempts=2)
    line = json.loads(log.getvalue())
    assert (line["lease_id"], line["project"], line["attempts"]) == ("5", "p", 2)


@pytest.mark.parametrize("form", ["json", "console"])
def test_nobody_writes_lines_of_his_own(demo: Asker, log: io.StringIO, form: str) -> None:
    log_setup.configure(form, "DEBUG", log)
    demo.ask("GET", "/v1/nowhere%0a2030-01-01 [info] forged%1b[2J")
    logging.getLogger("library").info("a text\nof two lines \x1b[2J")
    assert log.getvalue().count("\n") == 2
    assert "\x1b" not in log.getvalue()


def test_one_line_per_request_with_who_and_what(demo: Asker, log: io.StringIO) -> None:
    demo.ask("POST", "/v1/echo", json={})
    (line,) = [json.loads(line) for line in log.getvalue().splitlines()]
    assert line.keys() >= {"request_id", "user", "project", "method", "path", "status", "milliseconds", "timestamp"}


@pytest.mark.parametrize("level", ["DEBUG", "INFO"])
def test_no_library_logs_what_is_posted_where(log: io.StringIO, level: str) -> None:
    """The address of a receiver may be what lets one post there, and whoever answers may say anything."""
    log_setup.configure("console", level, log)
    with receiving() as receiver:
        parcel = PostRequest(f"{receiver.url}/{CANARY}", CANARY.encode(), {"X-Auth-Token": CANARY}, 5.0, private=True)
        http_client.post(parcel)
    structlog.get_logger("test").info("posted")
    assert "posted" in log.getvalue()
    assert CANARY not in log.getvalue()
