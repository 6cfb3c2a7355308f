"""What templates write: times with UTC beside them, lengths in two units, and values of a history."""

from datetime import UTC, datetime, timedelta

import pytest
from flask import Flask

from api.web import preferences
from api.web.rendering import PLACES, iso, left, time, value

MOMENT = datetime(2030, 7, 1, 22, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(0), "less than a minute"),
        (timedelta(seconds=-5), "less than a minute"),
        (timedelta(minutes=59), "59 min"),
        (timedelta(hours=2), "2 h"),
        (timedelta(hours=2, minutes=5, seconds=50), "2 h 5 min"),
        (timedelta(days=3, minutes=5), "3 d"),
        (timedelta(days=3, hours=7, minutes=5), "3 d 7 h"),
    ],
)
def test_lengths_have_two_units_at_most(length: timedelta, words: str) -> None:
    assert left(length.total_seconds()) == words


@pytest.mark.parametrize(
    ("zone", "written"),
    [
        ("", "Mon 01 Jul 2030 22:30 UTC"),
        ("UTC", "Mon 01 Jul 2030 22:30 UTC"),
        ("Mars/Olympus", "Mon 01 Jul 2030 22:30 UTC"),
        ("Europe/London", 'Mon 01 Jul 2030 23:30 <small class="utc">(22:30 UTC)</small>'),
        ("Asia/Tokyo", 'Tue 02 Jul 2030 07:30 <small class="utc">(Mon 22:30 UTC)</small>'),
    ],
)
def test_times_are_written_in_the_chosen_zone_with_utc_beside(app: Flask, zone: str, written: str) -> None:
    with app.test_request_context("/ui/", headers={"Cookie": f"{preferences.ZONE}={zone}"}):
        text = time(MOMENT)
    assert f'datetime="{iso(MOMENT)}"' in text
    assert text.endswith(f">{written}</time>")


def test_values_of_a_history_are_escaped_times_or_words(app: Flask) -> None:
    with app.test_request_context("/ui/"):
        assert "<time" in value(MOMENT)
    assert [value(one) for one in (None, "", 4, "<b>")] == ["nothing", "nothing", "4", "<b>"]


def test_each_entry_of_the_navigation_is_a_page(app: Flask) -> None:
    rules = {rule.rule for rule in app.url_map.iter_rules() if "GET" in (rule.methods or ())}
    assert {path for _, path, _ in PLACES} <= rules
