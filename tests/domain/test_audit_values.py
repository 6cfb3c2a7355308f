"""The audit trail shows each field of what it lists."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from climate.domain.audit_trail import describe
from climate.domain.hosts.maintenance_facts import FoldedWindow, WindowClosed, WindowPlanned
from climate.domain.period import Period

NOW = datetime(2031, 1, 1, tzinfo=UTC)
DURING = Period(NOW, NOW + timedelta(hours=1))
PLANNED = WindowPlanned(NOW, 1, DURING, "new memory")
OTHER: dict[str, Any] = {
    "host": replace(PLANNED, host=2),
    "during": replace(PLANNED, during=replace(DURING, end=DURING.end + timedelta(hours=1))),
    "reason": replace(PLANNED, reason="new disks"),
    "move_servers": replace(PLANNED, move_servers=True),
}


@pytest.mark.parametrize("field", [field.name for field in fields(FoldedWindow)])
def test_an_entry_of_a_window_shows_each_of_its_fields(field: str) -> None:
    window = UUID(int=1)
    if field == "state":
        assert describe(window, WindowClosed(NOW, "done"), [PLANNED], None).after == {"state": "done"}
        return
    one, other = (describe(window, fact, [], None).after for fact in (PLANNED, OTHER[field]))
    assert one != other
