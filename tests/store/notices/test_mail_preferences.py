"""Mail preferences as rows, and the time until which reminders are written."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine

from climate.domain.notifications import Topic
from climate.store.notices import mail_preferences

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_topics_are_replaced(engine: Engine) -> None:
    with engine.begin() as conn:
        assert mail_preferences.topics(conn, "user") == []
        mail_preferences.set_topics(conn, "user", [Topic.ENDED, Topic.START], NOW)
        assert mail_preferences.topics(conn, "user") == [Topic.START, Topic.ENDED]
        mail_preferences.set_topics(conn, "user", [], NOW)
        assert mail_preferences.topics(conn, "user") == []


def test_each_stretch_of_time_is_had_by_one(engine: Engine) -> None:
    later = NOW + timedelta(minutes=1)
    with engine.begin() as conn:
        assert mail_preferences.claim_interval(conn, NOW) is None
    with engine.begin() as conn:
        assert mail_preferences.claim_interval(conn, later) == NOW
    with engine.begin() as conn:
        assert mail_preferences.claim_interval(conn, later) is None
        assert mail_preferences.claim_interval(conn, NOW) is None, "a clock behind takes nothing back"
        assert mail_preferences.due(conn, NOW, later) == []
