"""The state of a lease of Blazar, by its events."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from climate.service.blazar_import.records import BlazarEvent, BlazarLease

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("start", "end", "is_over", "has_begun"),
    [
        ("UNDONE", "UNDONE", False, False),
        ("IN_PROGRESS", "UNDONE", False, True),
        ("DONE", "UNDONE", False, True),
        ("ERROR", "ERROR", False, True),
        ("DONE", "DONE", True, False),
    ],
)
def test_what_a_lease_is_at_follows_from_its_events(start: str, end: str, is_over: bool, has_begun: bool) -> None:
    lease = BlazarLease("1", "", "", "", NOON, NOON, "PENDING", None)
    lease = replace(
        lease, events=(BlazarEvent("1", "start_lease", NOON, start), BlazarEvent("2", "end_lease", NOON, end))
    )
    assert (lease.is_over, lease.has_begun) == (is_over, has_begun)
