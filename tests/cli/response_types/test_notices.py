"""The types of notifications, mail, calendar feeds and the audit beside what the server declares and answers."""

from typing import Any

import pytest
from marshmallow import Schema

from api.reservation import audit, calendar_feeds, mail_preferences
from api.reservation import notices as notices_api
from climate.cli.response_types import notices
from tests.cli.response_types.answer_types import differences, misfits, recorded


@pytest.mark.parametrize(
    ("kind", "declared"),
    [
        (notices.Notice, notices_api.NoticeOut),
        (notices.MailPreferences, mail_preferences.PreferencesOut),
        (notices.CalendarFeed, calendar_feeds.FeedOut),
        (notices.NewCalendarFeed, calendar_feeds.NewFeedOut),
        (notices.AuditEntry, audit.AuditEntryOut),
    ],
)
def test_a_type_has_the_keys_of_its_schema(kind: Any, declared: type[Schema]) -> None:
    assert differences(kind, declared) == []


def test_recorded_answers_are_of_these_types() -> None:
    assert misfits(recorded("/v1/notices", "notices"), list[notices.Notice]) == []
    assert misfits(recorded("/v1/audit", "audit"), list[notices.AuditEntry]) == []
