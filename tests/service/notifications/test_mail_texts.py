"""Messages: whatever a lease is called, its name stays a text."""

from dataclasses import replace
from datetime import UTC, datetime
from email import message_from_bytes
from email.policy import default

import pytest

from climate.domain.notifications import Notice
from climate.service.notifications import mail_texts
from climate.store.notices.notifications import Kept
from tests.service.calendars.test_ics import LEASE, by_icalendar

HEADERS = ["Subject", "From", "To", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"]
FROM, TO = "climate@example.org", "demo@example.org"


def kept(name: str) -> Kept:
    notice = Notice("lease.ended", f"Lease {name} has ended", "project", "user", LEASE.lease_id)
    return Kept(7, datetime(2030, 1, 1, tzinfo=UTC), notice)


@pytest.mark.parametrize(
    "name",
    [
        "a\r\nBcc: x@example.org",
        "a\nTo: x@example.org\n\nbody",
        "a\rX-Header: 1",
        "a\x00\x0b\x0c\x1c\x85\u2028\u2029b",
        "=?utf-8?q?a=0D=0ABcc:_x@example.org?=",
        "<script>alert(1)</script>\"'&",
        "{{ 7 * 7 }}{% raw %}",
        "ß" * 300,
        "\u202egnp.exe",
        "\ud83d",
    ],
)
def test_names_inject_nothing(name: str) -> None:
    shown = name.encode("utf-8", "replace").decode()
    made = mail_texts.message(kept(shown), replace(LEASE, name=shown), FROM, TO)
    read = message_from_bytes(made.as_bytes(), policy=default)
    assert read.keys() == HEADERS
    assert (read["To"], read["From"]) == (TO, FROM)
    assert "\n" not in read["Subject"]
    assert "\r" not in read["Subject"]
    html, plain = read.get_body(("html",)), read.get_body(("plain",))
    assert html is not None
    assert plain is not None
    assert "<script>" not in html.get_content()
    assert "49" not in plain.get_content()
    (attached,) = read.iter_attachments()
    (event,) = by_icalendar(attached.get_content().encode())
    assert event["uid"] == f"{LEASE.lease_id}@climate"


def test_the_same_notice_is_the_same_message() -> None:
    first, second = (mail_texts.message(kept("a"), LEASE, FROM, TO) for _ in range(2))
    assert first["Message-ID"] == second["Message-ID"] == "<climate-notice-7-1893456000@example.org>"


def test_a_notice_without_a_lease() -> None:
    made = mail_texts.message(kept("a"), None, FROM, TO)
    assert list(made.iter_attachments()) == []


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("a@b.c", True),
        ("a+b@b.c", True),
        ("", False),
        ("a", False),
        ("@b.c", False),
        ("a@", False),
        ("a@b.c\nBcc: x@y.z", False),
        ("a@b.c\r", False),
        ("a@b.c,d@e.f", False),
        ("A <a@b.c>", False),
        ("a b@c.d", False),
        ("a" * 251 + "@b.c", False),
    ],
)
def test_addresses(address: str, expected: bool) -> None:
    assert mail_texts.usable(address) is expected
