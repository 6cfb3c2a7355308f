"""A home from its first start over a stop to the next start, as its owner sees it."""

import json
import signal
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import httpx
import pytest

from tests.system.api_client import Api, host_lease, moment
from tests.system.packages import install
from tests.system.stack import Stack, await_so

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PRIVATE = ("admin-password", "clouds.yaml", "demo-password", "keys", "stores.json", "valkey")
OPEN = ("/healthz", "/readyz", "/openapi.json", "/identity", "/compute", "/reservation", "/image", "/network")
AWAY = 16
"""Seconds until the lease that is missed would have started: by then the stack has been stopped."""


@dataclass
class Story:
    """What was seen."""

    stack: Stack
    first_words: list[str] = field(default_factory=list)
    modes: dict[str, int] = field(default_factory=dict)
    ops: dict[str, httpx.Response] = field(default_factory=dict)
    figures: httpx.Response | None = None
    page: list[dict[str, Any]] = field(default_factory=list)
    stranger: dict[str, Any] = field(default_factory=dict)
    refused: "CompletedProcess[str] | None" = None
    ended: int = -1
    left: list[str] = field(default_factory=list)
    second_words: list[str] = field(default_factory=list)
    after: dict[str, dict[str, Any]] = field(default_factory=dict)
    before: dict[str, dict[str, Any]] = field(default_factory=dict)
    checked: "CompletedProcess[str] | None" = None


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("story")
    (folder / "pages").mkdir()
    told = Story(Stack(folder / "home", packages=(install("ledger", folder / "site"),)))
    try:
        _first_life(told, folder / "pages")
        _second_life(told)
        yield told
    finally:
        told.stack.stop(signal.SIGTERM)
    assert told.stack.left() == []


def _first_life(told: Story, pages: Path) -> None:
    stack = told.stack
    stack.start()
    told.first_words = list(stack.said)
    told.modes = {name: stat.S_IMODE((stack.home / name).stat().st_mode) for name in PRIVATE}
    told.ops = {path: httpx.get(stack.url + path, timeout=60, trust_env=False) for path in OPEN}
    admin = Api(stack.home, "climate")
    told.figures = admin.ask("GET", "/metrics")
    admin.close()
    api = Api(stack.home, "climate-demo")
    _let_a_stranger_work(told, api, pages)
    told.refused = stack.run("up")
    now = int(time.time())
    told.before["pending"] = _make(api, host_lease("pending", now + 86400, now + 90000))
    told.before["active"] = _make(api, host_lease("active", "now", now + AWAY + 1))
    await_so(lambda: _status(api, told.before["active"]) == "ACTIVE", 30, "the start of a lease")
    now = int(time.time())
    told.before["missed"] = _make(api, host_lease("missed", now + AWAY, now + AWAY + 2))
    api.close()
    told.ended, told.left = stack.stop(signal.SIGINT), stack.left()
    threading.Event().wait(max(0.0, now + AWAY + 3 - time.time()))


def _let_a_stranger_work(told: Story, api: Api, pages: Path) -> None:
    now = int(time.time())
    page = {"resource_type": "test:ledger", "folder": str(pages)}
    body = {"name": "stranger", "start_date": moment(now + 3), "end_date": moment(now + 6), "reservations": [page]}
    made = _make(api, {**body, "before_end_date": moment(now + 4), "events": []})
    told.stranger = await_so(lambda: _if_over(api, made), 60, "the end of a stranger's lease")
    lines = (pages / made["reservations"][0]["id"]).read_text(encoding="utf-8").splitlines()
    told.page = [json.loads(line) for line in lines]


def _second_life(told: Story) -> None:
    stack = told.stack
    stack.start()
    told.second_words = list(stack.said)
    api = Api(stack.home, "climate-demo")
    await_so(lambda: _if_over(api, told.before["missed"]), 60, "the end of a missed lease")
    await_so(lambda: _if_over(api, told.before["active"]), 60, "the end of a lease after its time")
    told.after = {name: api.read(f"/v1/leases/{lease['id']}")["lease"] for name, lease in told.before.items()}
    told.checked = stack.run("journal", "check")
    api.close()


def _make(api: Api, body: dict[str, Any]) -> dict[str, Any]:
    answer = api.ask("POST", "/v1/leases", body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()["lease"]
    return made


def _status(api: Api, lease: dict[str, Any]) -> str:
    return str(api.read(f"/v1/leases/{lease['id']}")["lease"]["status"])


def _if_over(api: Api, lease: dict[str, Any]) -> dict[str, Any]:
    now: dict[str, Any] = api.read(f"/v1/leases/{lease['id']}")["lease"]
    return now if now["status"] == "TERMINATED" else {}


def _event(lease: dict[str, Any], kind: str) -> dict[str, Any]:
    return next(event for event in lease["events"] if event["event_type"] == kind)


def test_the_first_start_says_the_password_once(story: Story) -> None:
    password = (story.stack.home / "admin-password").read_text(encoding="utf-8").strip()
    assert len([line for line in story.first_words if password in line]) == 1
    assert not [line for line in story.second_words if password in line]


def test_what_is_secret_is_private(story: Story) -> None:
    assert {name: mode & 0o077 for name, mode in story.modes.items()} == dict.fromkeys(PRIVATE, 0)


def test_it_tells_how_it_is(story: Story) -> None:
    said = {path: answer.status_code for path, answer in story.ops.items()}
    assert [path for path, status in said.items() if status not in (200, 300)] == [], said
    assert story.ops["/readyz"].json()["status"] == "ready"
    assert set(story.ops["/readyz"].json()["checks"]) >= {"database", "broker", "poller", "migrations"}
    assert story.figures is not None
    assert story.figures.status_code == 200
    assert "climate_" in story.figures.text


def test_a_second_start_is_refused_in_one_line(story: Story) -> None:
    assert story.refused is not None
    assert story.refused.returncode == 1
    said = (story.refused.stdout + story.refused.stderr).strip().splitlines()
    assert len(said) == 1, said
    assert f"climate is already running in {story.stack.home}" in said[0]


def test_ctrl_c_ends_everything(story: Story) -> None:
    assert (story.ended, story.left) == (0, [])


def test_leases_outlive_a_restart(story: Story) -> None:
    pending = story.after["pending"]
    assert pending["status"] == "PENDING"
    assert pending == story.before["pending"]


def test_a_lease_that_was_running_is_ended_after_its_time(story: Story) -> None:
    active = story.after["active"]
    assert _event(active, "start_lease")["status"] == "DONE"
    assert _event(active, "end_lease")["status"] == "DONE"
    assert active["reservations"][0]["status"] == "deleted"


def test_a_lease_that_was_over_before_it_could_start_is_never_started(story: Story) -> None:
    missed = story.after["missed"]
    assert _event(missed, "start_lease")["status"] == "ERROR"
    assert _event(missed, "end_lease")["status"] == "DONE"
    assert "missed" in json.dumps(missed), "it says why"


def test_the_journal_agrees(story: Story) -> None:
    assert story.checked is not None
    assert story.checked.returncode == 0, story.checked.stdout + story.checked.stderr


def test_a_plugin_of_somebody_else_is_used_like_ours(story: Story) -> None:
    """It was found by the entry point in its package's metadata, which climate knows nothing of."""
    assert [(line["word"], line["did"]) for line in story.page] == [
        ("start", "applied"),
        ("before_end", "applied"),
        ("end", "applied"),
    ]
    assert {event["status"] for event in story.stranger["events"]} == {"DONE"}
