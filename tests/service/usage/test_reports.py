"""Who sees which usage, and which questions are refused."""

from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.errors import Forbidden, InvalidInput
from climate.service.usage import reports
from climate.service.usage import round as usage
from climate.service.usage.reports import UsageRequest
from climate.store.usage.reports import ReportInterval
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service.lease_actions import make, run_due

HOUR = timedelta(hours=1)


def test_members_see_their_project_only(climate: Climate, clock: Clock) -> None:
    make(climate, clock, start=0)
    run_due(climate)
    usage.run_round(climate)
    clock.forward(hours=1)
    request = UsageRequest(per=ReportInterval.ALL)
    assert [line.key for line in reports.report(climate, MEMBER, request).lines] == [MEMBER.project_id]
    assert reports.report(climate, STRANGER, request).lines == []
    for refused in (UsageRequest(project_id=MEMBER.project_id), UsageRequest(by="pool")):
        with pytest.raises(Forbidden):
            reports.report(climate, STRANGER, refused)


@pytest.mark.parametrize("by", ["", "host:x", "property", "property:", "property:colour", "Host", "x" * 300])
def test_unknown_keys_are_refused(climate: Climate, by: str) -> None:
    with pytest.raises(InvalidInput, match="by is"):
        reports.report(climate, ADMIN, UsageRequest(by=by))


def test_periods_have_limits(climate: Climate, clock: Clock) -> None:
    now = clock.time
    for start, end in (
        (now + HOUR, None),
        (now - HOUR, now - 2 * HOUR),
        (now - timedelta(days=3700), None),
        (now - timedelta(days=365_000), None),
    ):
        with pytest.raises(InvalidInput):
            reports.report(climate, ADMIN, UsageRequest(start=start, end=end))
    assert reports.report(climate, ADMIN, UsageRequest(end=now + HOUR)).period.end == now


def test_a_report_with_too_many_lines_is_refused(climate: Climate, clock: Clock) -> None:
    make(climate, clock, start=0, hours=48)
    run_due(climate)
    usage.run_round(climate)
    clock.forward(hours=47)
    assert len(reports.report(climate, ADMIN, UsageRequest(), most=3).lines) == 3
    with pytest.raises(InvalidInput, match="more than 2 lines"):
        reports.report(climate, ADMIN, UsageRequest(), most=2)
