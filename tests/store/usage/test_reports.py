"""Reports of usage against a model that looks at each hour of each host."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects.postgresql import Range

from climate.context import Climate
from climate.domain.period import Period
from climate.store.tables.hosts import hosts
from climate.store.tables.usage import host_activity, lease_usage
from climate.store.usage import reports
from climate.store.usage.reports import GroupBy, ReportInterval, UsageQuery

BEGIN = datetime(2030, 1, 28, tzinfo=UTC)
"""A Monday, three days before a month ends."""
HOUR = timedelta(hours=1)
HOURS = 24 * 9

Rows = list[tuple[int, int, int]]
"""Host, first hour, hour after the last."""


@st.composite
def rows(draw: st.DrawFn) -> Rows:
    """Stretches that overlap on no host, of three hosts."""
    result: Rows = []
    for host in (1, 2, 3):
        cuts = draw(st.lists(st.integers(0, HOURS), max_size=6, unique=True).map(sorted))
        result += [(host, first, last) for first, last in zip(cuts[::2], cuts[1::2], strict=False)]
    return result


def _at(hour: int) -> datetime:
    return BEGIN + hour * HOUR


def _part(moment: datetime, per: ReportInterval, start: datetime) -> datetime:
    """Return the beginning of the part that the moment lies in."""
    day = moment.replace(hour=0)
    begin = {
        ReportInterval.DAY: day,
        ReportInterval.WEEK: day - timedelta(days=day.weekday()),
        ReportInterval.MONTH: day.replace(day=1),
        ReportInterval.ALL: start,
    }[per]
    return max(begin, start)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(leased=rows(), busy=rows(), per=st.sampled_from(ReportInterval), by=st.sampled_from(GroupBy), data=st.data())
def test_a_report_is_the_sum_of_hours(
    *, climate: Climate, leased: Rows, busy: Rows, per: ReportInterval, by: GroupBy, data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, HOURS - 1))
    last = data.draw(st.integers(first + 1, HOURS))
    owners = [data.draw(st.sampled_from(["p", "q"])) for _ in leased]
    only = data.draw(st.sampled_from([None, "p"]))
    with climate.engine.connect() as conn:
        conn.execute(update(hosts).where(hosts.c.id == 2).values(extra={"rack": "r2"}, home="multi-tenant"))
        names = {row.id: row.hypervisor_hostname for row in conn.execute(select(hosts))}
        conn.execute(delete(lease_usage))
        for (host, begin, end), owner in zip(leased, owners, strict=True):
            conn.execute(
                insert(lease_usage).values(
                    lease_id=uuid4(),
                    reservation_id=uuid4(),
                    project_id=owner,
                    user_id=f"user of {owner}",
                    host=host,
                    slots=2 if host == 3 else 0,
                    during=Range(_at(begin), _at(end)),
                )
            )
        for host, begin, end in busy:
            conn.execute(insert(host_activity).values(host=host, starts_at=_at(begin), ends_at=_at(end)))
        wanted = UsageQuery(Period(_at(first), _at(last)), by, per, "rack", only, 10_000)
        lines = reports.lines(conn, wanted)
        conn.rollback()
    expected: dict[tuple[datetime, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    running = {(host, hour) for host, begin, end in busy for hour in range(begin, end)}
    for (host, begin, end), owner in zip(leased, owners, strict=True):
        if only not in (None, owner):
            continue
        key = {
            GroupBy.PROJECT: owner,
            GroupBy.USER: f"user of {owner}",
            GroupBy.HOST: names[host],
            GroupBy.POOL: "multi-tenant" if host == 2 else "reservation",
            GroupBy.PROPERTY: "r2" if host == 2 else "",
        }[by]
        for hour in range(max(begin, first), min(end, last)):
            line = expected[_part(_at(hour), per, _at(first)), key]
            if host == 3:
                line[2] += 2
            else:
                line[0] += 1
                line[1] += (host, hour) in running
    seen = {(line.start, line.key): [line.reserved / HOUR, line.used / HOUR, line.slots / HOUR] for line in lines}
    assert seen == dict(expected)
    assert all(line.idle == line.reserved - line.used for line in lines)


@pytest.mark.parametrize("by", GroupBy)
def test_the_number_of_lines_is_limited(climate: Climate, by: GroupBy) -> None:
    with climate.engine.connect() as conn:
        conn.execute(
            insert(lease_usage).values(
                lease_id=uuid4(),
                reservation_id=uuid4(),
                project_id="p",
                user_id="u",
                host=1,
                during=Range(BEGIN, BEGIN + timedelta(days=9)),
            )
        )
        wanted = UsageQuery(Period(BEGIN, BEGIN + timedelta(days=9)), by, ReportInterval.DAY, "rack", None, 4)
        assert len(reports.lines(conn, wanted)) == 4
        conn.rollback()
