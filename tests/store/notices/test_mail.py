"""Mail preferences as rows, and the time until which reminders are written."""

from datetime import UTC, datetime, timedelta

from sqlalchemy import Engine

from climate.domain.notifications import Topic
from climate.store.notices import mail

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def test_topics_are_replaced(engine: Engine) -> None:
    with engine.begin() as conn:
        assert mail.topics(conn, "user") == []
        mail.set_topics(conn, "user", [Topic.ENDED, Topic.START], NOW)
        assert mail.topics(conn, "user") == [Topic.START, Topic.ENDED]
        mail.set_topics(conn, "user", [], NOW)
        assert mail.topics(conn, "user") == []


def test_each_stretch_of_time_is_had_by_one(engine: Engine) -> None:
    later = NOW + timedelta(minutes=1)
    with engine.begin() as conn:
        assert mail.claim_interval(conn, NOW) is None
    with engine.begin() as conn:
        assert mail.claim_interval(conn, later) == NOW
    with engine.begin() as conn:
        assert mail.claim_interval(conn, later) is None
        assert mail.claim_interval(conn, NOW) is None, "a clock behind takes nothing back"
        assert mail.due(conn, NOW, later) == []
