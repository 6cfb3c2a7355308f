"""Exit codes, error texts, and what is tried again."""

import json
from pathlib import Path
from typing import Any

import pytest

from climate.cli.errors import EXIT_CODES, message_of
from tests.cli.conftest import Cli, write_clouds
from tests.cli.fake_server import Wire

LIST = "/reservation/v1/leases"


def refused(wire: Wire, status: int, message: str, headers: dict[str, str] | None = None) -> None:
    """Let the next request be refused."""
    body = {"error_code": status, "error_message": message, "error_name": status}
    wire.answers = [(status, body, headers or {})]


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "Start date must be later than current date", 2),
        (403, "Policy doesn't allow climate:leases:get to be performed", 4),
        (403, "Quota exceeded for leases: limit 10, in use 10", 6),
        (404, "not found", 3),
        (409, "Not enough hosts available", 5),
        (412, "someone else changed it", 5),
        (429, "too many requests", 6),
        (500, "Internal Server Error", 1),
        (503, "busy", 8),
    ],
)
def test_an_answer_has_its_exit_code_and_says_cause_and_request(
    cli: Cli, wire: Wire, status: int, message: str, code: int
) -> None:
    assert cli("token").code == 0
    refused(wire, status, message)
    ran = cli("lease", "list")
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith(f"error: {message}\n")
    assert "request id: req-1" in ran.err


def _login(wire: Wire, token: str) -> tuple[int, Any, dict[str, str]]:
    catalog = [{"type": "reservation", "endpoints": [{"interface": "public", "url": f"{wire.url}/reservation/v1"}]}]
    body = {"token": {"issued_at": "2030-01-01T12:00:00.000000Z", "catalog": catalog}}
    return (201, body, {"X-Subject-Token": token})


def test_errors_are_json_where_json_was_asked_for(cli: Cli) -> None:
    ran = cli("lease", "show", "nothing", "-f", "json")
    said = json.loads(ran.err)
    assert set(said) == {"code", "message", "details", "hint", "request_id"}
    assert (said["code"], ran.code, ran.out) == (3, 3, "")


def test_a_wrong_password_is_not_allowed(cli: Cli, wire: Wire, tmp_path: Path) -> None:
    write_clouds(tmp_path, wire.url, password="guessed")
    ran = cli("lease", "list")
    assert ran.code == 4
    assert "wrong password" in ran.err


def test_a_server_that_is_not_there_is_unreachable(cli: Cli, tmp_path: Path) -> None:
    write_clouds(tmp_path, "http://127.0.0.1:1")
    ran = cli("lease", "list")
    assert ran.code == 8
    assert "try: " in ran.err


def test_an_expired_token_is_replaced_once(cli: Cli, wire: Wire) -> None:
    forgotten: tuple[int, Any, dict[str, str]] = (401, {"error": {"code": 401, "message": "expired"}}, {})
    wire.answers = [_login(wire, "expired already")]
    assert cli("lease", "list", "-f", "json").data == []
    wire.answers = [forgotten, _login(wire, "two"), forgotten]
    before = len(wire.asked)
    assert cli("lease", "list").code == 4
    assert len(wire.asked) - before == 3


def test_busy_is_tried_again_when_that_cannot_do_harm(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    busy = (409, {"error_message": "Something is at work on this right now"}, {"Retry-After": "0"})
    wire.answers = [_login(wire, "known"), busy, busy]
    wire.tokens.add("known")
    assert cli("lease", "delete", lease["id"]).code == 0
    wire.answers = [_login(wire, "known"), busy]
    assert cli("host", "create", "node").code in (3, 5)
    assert len([asked for asked in wire.asked if asked.path.endswith("/os-hosts")]) == 1


def test_a_page_that_is_no_climate_is_reported_in_one_line(cli: Cli, wire: Wire) -> None:
    wire.answers = [(200, "<html>", {})]
    ran = cli("lease", "list")
    assert ran.code == 1
    assert ran.err.count("\n") <= 2


def test_a_misspelt_setting_is_named_with_the_nearest(cli: Cli, environ: dict[str, str]) -> None:
    environ["CLIMATE_PROT"] = "8001"
    environ["CLIMATE_SOMETHING_OF_ANOTHER_PROGRAM"] = "x"
    ran = cli("lease", "list")
    assert (ran.code, "did you mean CLIMATE_PORT?" in ran.err) == (0, True)
    assert "ANOTHER" not in ran.err


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "http://", "htp://here", "http://[::1", "http://here:port"])
def test_a_url_that_is_none_is_told_in_a_sentence(cli: Cli, tmp_path: Path, url: str) -> None:
    write_clouds(tmp_path, url)
    ran = cli("lease", "list")
    assert ran.code == 2
    assert "is not a URL" in ran.err


def test_the_hint_of_a_conflict_fits_the_request(cli: Cli, wire: Wire) -> None:
    assert cli("host", "list").code == 0
    refused(wire, 409, "1 lease is in the way")
    wire.answers.insert(0, (200, {}, {}))
    ran = cli("host", "maintenance", "1", "--reason", "disks", "--for", "2h")
    assert (ran.code, "--force" in ran.err) == (5, True)


@pytest.mark.parametrize(
    ("message", "hint"),
    [
        ("99 wanted, 4 match, 4 of them free", "request less, other properties, or another time"),
        (
            "4 wanted, 3 of them free; it would fit from 2030-01-01 13:00 UTC",
            "request less, or the time in the message",
        ),
    ],
)
def test_the_hint_of_a_refused_lease_names_a_time_only_if_there_is_one(
    cli: Cli, wire: Wire, message: str, hint: str
) -> None:
    assert cli("token").code == 0
    refused(wire, 409, message)
    wire.answers.insert(0, (200, {}, {}))
    assert f"try: {hint}\n" in cli("lease", "create", "mine", "--hosts", "1", "--for", "1h").err


def test_a_cloud_that_is_misspelt_is_answered_with_those_there_are(cli: Cli) -> None:
    ran = cli("--os-cloud", "climat", "lease", "list")
    assert (ran.code, "try: choose one of climate with" in ran.err) == (2, True)


def test_the_cloud_behind_the_command_is_shown_its_place(cli: Cli) -> None:
    ran = cli("lease", "list", "--os-cloud", "climate")
    assert (ran.code, "try: climate --os-cloud NAME lease list\n" in ran.err) == (2, True)


def test_a_deleted_lease_leads_to_its_history(cli: Cli) -> None:
    gone = "01a20d2e-9da0-7322-98e1-8116eef5b065"
    ran = cli("lease", "show", gone)
    assert ran.code == 3
    assert ran.err.startswith(f"error: no lease '{gone}'\n")
    assert "climate lease history" in ran.err


def test_a_lease_of_nothing_is_noted(cli: Cli) -> None:
    assert "reserves nothing" in cli("lease", "create", "empty", "--for", "1h").err
    assert cli("lease", "create", "mine", "--hosts", "1", "--for", "1h").err == ""


def test_a_refusal_because_of_forged_rows_says_itself_what_to_do(cli: Cli, wire: Wire) -> None:
    assert cli("token").code == 0
    refused(wire, 409, "not what its journal says (reason): mend them by `climate journal rebuild`")
    ran = cli("lease", "list")
    assert (ran.code, "try:" in ran.err) == (5, False)


def test_a_setting_that_cannot_be_used_is_named(cli: Cli, environ: dict[str, str]) -> None:
    environ["CLIMATE_PORT"] = "many"
    ran = cli("lease", "list")
    assert ran.code == 2
    assert "CLIMATE_PORT" in ran.err


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"error_code": 404, "error_message": "flat"}, "flat"),
        ({"error": {"code": 401, "message": "identity"}}, "identity"),
        ({"itemNotFound": {"code": 404, "message": "compute"}}, "compute"),
        ("plain text\nsecond line", "plain text"),
        ([], ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_message_is_found_in_every_shape_of_error(body: Any, text: str) -> None:
    assert message_of(body) == text


def test_exit_codes_are_numbered_without_holes() -> None:
    assert list(EXIT_CODES) == list(range(9))


def test_a_lease_that_cannot_be_read_is_refused_without_the_advice_to_wait(cli: Cli, wire: Wire) -> None:
    assert cli("lease", "list").code == 0
    wire.answers = [(503, {"error_code": 503, "error_message": "Lease l1: `climate event mend l1`"}, {})]
    said = cli("lease", "list")
    assert "climate event mend l1" in said.err
    assert "wait a few seconds" not in said.err
