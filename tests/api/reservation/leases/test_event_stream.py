"""The stream of changes over HTTP, as a client sees it that polls: who learns what, and what resumes."""

import json
from typing import Any
from uuid import UUID

import pytest
from flask import Flask

from tests.api.reservation.api_clients import Person

Event = dict[str, Any]


def events(person: Person, query: str = "", **headers: str) -> list[Event]:
    """The events of an answer, each with its id, name and data."""
    answer = person("GET", f"/events/stream{query}", headers={"Accept": "text/event-stream", **headers})
    assert (answer.status_code, answer.mimetype) == (200, "text/event-stream")
    blocks = [dict(line.split(": ", 1) for line in block.splitlines()) for block in answer.text.split("\n\n") if block]
    return [{**one, "data": json.loads(one["data"])} for one in blocks if "event" in one]


def last(person: Person) -> str:
    return str(events(person)[-1]["id"])


def test_changes_after_the_last_id(member: Person, admin: Person) -> None:
    known = last(member)
    lease = member.lease("mine")
    first, end = events(member, **{"Last-Event-ID": known})
    assert (first["event"], first["data"]["kind"], first["data"]["lease_id"]) == ("lease", "LeaseCreated", lease["id"])
    assert (end["event"], end["id"]) == ("ready", first["id"])
    assert events(member, f"?after={end['id']}") == [end]
    assert events(admin, f"?after={known}")[0]["data"]["project_id"] == "project"


def test_nothing_of_another_project(member: Person, stranger: Person) -> None:
    known = last(stranger)
    lease = member.lease("hidden-name")
    assert member("PUT", f"/leases/{lease['id']}", {"name": "hidden-too"}).status_code == 200
    first, _ = events(stranger, f"?after={known}")
    assert (first["event"], first["data"]) == ("calendar", {})
    assert [one["event"] for one in events(stranger, f"?after={known}&lease={lease['id']}")] == ["ready"]


def test_only_one_lease(member: Person) -> None:
    known = last(member)
    member.lease("other")
    lease = member.lease("mine")
    (first, _) = events(member, f"?after={known}&lease={lease['id']}")
    assert UUID(first["data"]["lease_id"]) == UUID(lease["id"])


def test_limits_of_ones_own_project(member: Person, stranger: Person, admin: Person) -> None:
    known = last(member)
    admin.done(admin("PUT", "/limits/project", {"leases": 5}))
    assert [one["event"] for one in events(member, f"?after={known}")] == ["limits", "ready"]
    assert [one["event"] for one in events(stranger, f"?after={known}")] == ["ready"]


@pytest.mark.parametrize("query", ["?after=-1", "?after=x", "?lease=7", "?since=1", f"?after={10**19}"])
def test_what_is_refused(member: Person, query: str) -> None:
    assert member("GET", f"/events/stream{query}", headers={"Accept": "text/event-stream"}).status_code == 400


@pytest.mark.parametrize("sent", ["x", "-1", "1" * 30, "1 2"])
def test_a_malformed_last_id_is_none(member: Person, sent: str) -> None:
    assert [one["event"] for one in events(member, **{"Last-Event-ID": sent})] == ["ready"]


def test_the_stream_needs_a_role(app: Flask) -> None:
    assert Person(app, "without a role")("GET", "/events/stream").status_code == 403
    assert Person(app, "nobody")("GET", "/events/stream").status_code == 401
