"""Leases as iCalendar: what the parsers of others read of it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import icalendar
import pytest
import vobject  # type: ignore[import-untyped]

from climate.domain.period import Period
from climate.service.calendars import ics
from climate.store.notices.calendar_feeds import Entry

START, END = datetime(2030, 1, 2, 10, tzinfo=UTC), datetime(2030, 1, 2, 12, tzinfo=UTC)
LEASE = Entry(
    UUID("00000000-0000-0000-0000-000000000007"),
    "training",
    Period(START, END),
    "PENDING",
    1,
    datetime(2030, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC),
    None,
    removed=False,
    resources=("2 × physical:host",),
)

PROPERTIES = {
    *("UID", "SEQUENCE", "DTSTAMP", "CREATED", "LAST-MODIFIED", "DTSTART", "DTEND"),
    *("SUMMARY", "STATUS", "DESCRIPTION"),
}


def by_icalendar(content: bytes) -> list[dict[str, Any]]:
    read = icalendar.Calendar.from_ical(content)
    return [
        {
            "uid": str(one["uid"]),
            "sequence": int(one["sequence"]),
            "start": one["dtstart"].dt,
            "end": one["dtend"].dt,
            "summary": str(one["summary"]),
            "status": str(one["status"]),
            "description": str(one["description"]),
        }
        for one in read.walk("VEVENT")
    ]


def by_vobject(content: bytes) -> list[dict[str, Any]]:
    return [
        {
            "uid": one.uid.value,
            "sequence": int(one.sequence.value),
            "start": one.dtstart.value,
            "end": one.dtend.value,
            "summary": one.summary.value,
            "status": one.status.value,
            "description": one.description.value,
        }
        for one in vobject.readOne(content.decode()).vevent_list
    ]


def test_two_parsers_read_the_same() -> None:
    content = ics.calendar("GPU hosts", [LEASE])
    assert by_icalendar(content) == by_vobject(content)
    assert by_icalendar(content) == [
        {
            "uid": "00000000-0000-0000-0000-000000000007@climate",
            "sequence": 0,
            "start": START,
            "end": END,
            "summary": "training",
            "status": "CONFIRMED",
            "description": "2 × physical:host\nStatus: PENDING",
        }
    ]


def test_head_of_a_calendar() -> None:
    (read,) = icalendar.Calendar.from_ical(ics.calendar("GPU hosts", []), multiple=True)
    assert (str(read["x-wr-calname"]), str(read["method"]), str(read["version"])) == ("GPU hosts", "PUBLISH", "2.0")
    assert b"REFRESH-INTERVAL;VALUE=DURATION:PT15M" in ics.calendar("GPU hosts", [])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "CONFIRMED"),
        ({"status": "HELD"}, "TENTATIVE"),
        ({"removed": True, "updated_at": START}, "CANCELLED"),
        ({"removed": True, "updated_at": END}, "CONFIRMED"),  # it had taken place
        ({"status": "TERMINATED", "updated_at": END}, "CONFIRMED"),
    ],
)
def test_status(changes: dict[str, Any], expected: str) -> None:
    (read,) = by_vobject(ics.calendar("c", [replace(LEASE, **changes)]))
    assert read["status"] == expected


def test_a_change_raises_the_sequence_of_the_same_event() -> None:
    before, after = (
        icalendar.Event.from_ical(ics.event(one)) for one in (LEASE, replace(LEASE, version=3, updated_at=START))
    )
    assert before["uid"] == after["uid"]
    assert (before["sequence"], after["sequence"]) == (0, 2)
    assert after["dtstamp"].dt == after["last-modified"].dt == START


@pytest.mark.parametrize(
    "name",
    [
        "a\r\nEND:VEVENT\r\nBEGIN:VEVENT\r\nUID:theirs",
        "a\nATTENDEE:mailto:x@example.org",
        "a\rBEGIN:VALARM",
        'a;b,c\\d:e"f',
        "a\x00\x07\x0b\x85\x9fb",
        "ß" * 200,
        "a\u2028b\u2029c",
    ],
)
def test_names_stay_texts(name: str) -> None:
    content = ics.calendar(name, [replace(LEASE, name=name)])
    ours, theirs = by_icalendar(content), by_vobject(content)
    assert len(ours) == len(theirs) == 1
    assert ours[0]["uid"] == theirs[0]["uid"] == f"{LEASE.lease_id}@climate"
    (event,) = icalendar.Calendar.from_ical(content).walk("VEVENT")
    assert set(event) == PROPERTIES
    assert bytes(event.to_ical(sorted=False)) == ics.event(replace(LEASE, name=name)), "the library writes the same"
    assert ours[0]["summary"] == theirs[0]["summary"]
    assert max(map(len, content.split(b"\r\n"))) <= 75
