"""Notifications that are followed."""

from datetime import UTC, datetime
from itertools import islice
from typing import Any, cast

from climate.cli.connection.client import Client
from climate.cli.leases.notice import followed


class Server:
    """A client whose server has one notification more at each poll."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []

    def now(self) -> datetime:
        return datetime(2030, 1, 1, 12, tzinfo=UTC)

    def pages(self, service: str, path: str, key: str, params: dict[str, str]) -> list[dict[str, Any]]:
        self.asked.append(params)
        return [{"id": str(one), "at": f"2030-01-01T12:0{one}:00.000000"} for one in range(len(self.asked))]


def test_each_notification_is_told_once_and_polls_overlap() -> None:
    server = Server()
    told = [one["id"] for one in islice(followed(cast(Client, server), {"kind": "host.failed"}, pause=0), 3)]
    assert told == ["0", "1", "2"]
    assert [one.get("since") for one in server.asked] == [None, "2030-01-01T11:59:00Z", "2030-01-01T12:00:00Z"]
