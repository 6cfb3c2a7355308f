"""Spans of a host in a calendar, and what a viewer may know of them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from climate.domain.hosts.timeline import Allocated, Span, SpanKind, spans

START = datetime(2030, 1, 2, 10, tzinfo=UTC)
HOUR = timedelta(hours=1)
LEASE = Allocated(
    7,
    1,
    "lease",
    "held",
    START,
    START + 4 * HOUR,
    reservation_id=UUID(int=1),
    lease_id=UUID(int=2),
    lease_name="mine",
    project_id="project",
    status="PENDING",
    ends_at=START + 2 * HOUR,
    grace_seconds=3600,
)
WINDOW = Allocated(8, 1, "maintenance", "held", START, START + HOUR, window_id=UUID(int=3), reason="new memory")


def parts(one: Allocated, viewer: str | None) -> list[tuple[str, float, float]]:
    """Kinds with their begins and ends in hours."""
    return [(span.kind, (span.start - START) / HOUR, (span.end - START) / HOUR) for span in spans([one], viewer)]


@pytest.mark.parametrize("viewer", ["project", None])
def test_lease_grace_and_cleaning(viewer: str | None) -> None:
    assert parts(LEASE, viewer) == [("lease", 0, 2), ("grace", 2, 3), ("cleaning", 3, 4)]
    assert {span.lease_name for span in spans([LEASE], viewer)} == {"mine"}
    assert len({span.id for span in spans([LEASE], viewer)}) == 3


def test_lease_of_another_project_is_one_busy_span() -> None:
    (span,) = spans([LEASE], "other")
    assert span == Span(SpanKind.BUSY, START, START + 4 * HOUR)


def test_slots_of_another_project_are_not_counted() -> None:
    (span,) = spans([replace(LEASE, slots=5, vcpus=20)], "other")
    assert (span.slots, span.vcpus) == (1, 0)


@pytest.mark.parametrize("end", [1.5, 2.0, 2.5])
def test_host_that_is_kept_for_less_than_the_margin(end: float) -> None:
    known = parts(replace(LEASE, end=START + end * HOUR), "project")
    assert known[-1][2] == end
    assert all(begin < after for _, begin, after in known)


def test_host_that_came_after_the_end_has_its_grace_alone() -> None:
    late = replace(LEASE, start=START + 2.5 * HOUR)
    assert [kind for kind, _, _ in parts(late, "project")] == ["grace", "cleaning"]


def test_reason_of_maintenance_is_for_administrators() -> None:
    assert spans([WINDOW], None)[0].reason == "new memory"
    assert spans([WINDOW], "project") == [Span(SpanKind.MAINTENANCE, START, START + HOUR)]


def test_a_kind_without_a_word_is_busy() -> None:
    assert parts(replace(WINDOW, kind="hold"), "project") == [("busy", 0, 1)]
