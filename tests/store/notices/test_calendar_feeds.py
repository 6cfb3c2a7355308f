"""Calendar feeds as rows: secrets, order and the number of entries."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import IntegrityError

from climate.domain.period import Period
from climate.store.notices import calendar_feeds
from climate.store.notices.calendar_feeds import Feed, Scope

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def feed(number: int) -> Feed:
    return Feed(UUID(int=number), Scope.USER, "project", "user", f"feed {number}", NOW)


def test_a_feed_is_found_by_its_hash_alone(engine: Engine) -> None:
    with engine.begin() as conn:
        calendar_feeds.add(conn, feed(1), b"a" * 32)
        assert calendar_feeds.with_secret(conn, b"a" * 32) == feed(1)
        assert calendar_feeds.with_secret(conn, b"a" * 31) is None
        with pytest.raises(IntegrityError), conn.begin_nested():
            calendar_feeds.add(conn, feed(2), b"a" * 32)
        assert calendar_feeds.remove(conn, feed(1).id)
        assert not calendar_feeds.remove(conn, feed(1).id)


def test_pages_and_owners(engine: Engine) -> None:
    with engine.begin() as conn:
        for number in range(1, 5):
            calendar_feeds.add(conn, feed(number), bytes([number]) * 32)
        assert calendar_feeds.listed(conn, ("user", "project"), feed(2).id, 1) == [feed(3)]
        assert calendar_feeds.listed(conn, ("user", "other"), None, None) == []
        assert calendar_feeds.count(conn, "user", "project") == 4
        window = Period(NOW, NOW + timedelta(days=1))
        assert calendar_feeds.entries(conn, feed(1), window, 10) == []
        assert calendar_feeds.entries_of(conn, [UUID(int=9)]) == {}
