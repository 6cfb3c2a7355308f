"""The round that computes host hours from the journal, and samples running servers."""

from collections.abc import Mapping
from datetime import timedelta

import pytest
from sqlalchemy import Engine, delete, select, text, update

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.service.journal import rebuild
from climate.service.leases import leases
from climate.service.leases.leases import LeaseRequest
from climate.service.usage import reports
from climate.service.usage import round as usage
from climate.service.usage.reports import UsageRequest
from climate.store.tables.usage import lease_usage, usage_progress
from climate.store.usage import host_hours
from climate.store.usage.reports import ReportInterval
from tests.conftest import ADMIN, MEMBER, Clock
from tests.service.host_rounds import fall_ill
from tests.service.lease_actions import held, hosts_wanted, make, run_due

HOUR = timedelta(hours=1)


@pytest.fixture
def cloud(climate: Climate) -> FakeCloud:
    assert isinstance(climate.cloud, FakeCloud)
    return climate.cloud


def hours(climate: Climate, **more: object) -> Mapping[str, tuple[float, float]]:
    """Return reserved and used hours by key."""
    request = UsageRequest(per=ReportInterval.ALL, **more)  # type: ignore[arg-type]
    return {
        line.key: (round(line.reserved / HOUR, 3), round(line.used / HOUR, 3))
        for line in reports.report(climate, ADMIN, request).lines
    }


def test_a_lease_counts_from_its_start_until_it_is_given_back(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=1, hours=4)
    usage.run_round(climate)
    assert hours(climate) == {}, "a planned lease has used nothing yet"
    clock.forward(hours=2)
    run_due(climate)
    usage.run_round(climate)
    assert hours(climate) == {MEMBER.project_id: (2, 0)}, "two hosts for an hour"
    clock.forward(hours=1)
    leases.delete(climate, MEMBER, lease.id)
    run_due(climate)
    usage.run_round(climate)
    clock.forward(hours=5)
    assert hours(climate) == {MEMBER.project_id: (4, 0)}
    assert len(hours(climate, by="host")) == 2


def test_what_was_never_given_out_does_not_count(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, start=1, hours=4)
    leases.delete(climate, MEMBER, lease.id)
    begin = clock.time
    leases.create(
        climate,
        MEMBER,
        LeaseRequest("h", begin, begin + 4 * HOUR, None, [hosts_wanted()], hold=timedelta(seconds=60)),
    )
    clock.forward(hours=1)
    run_due(climate)
    usage.run_round(climate)
    clock.forward(hours=5)
    assert hours(climate) == {}


def test_a_host_that_was_replaced_counts_until_then(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, start=0, hours=4)
    run_due(climate)
    before = held(lease)
    clock.forward(hours=1)
    fall_ill(climate, clock, min(before))
    run_due(climate)
    clock.forward(hours=6)
    usage.run_round(climate)
    by_host = hours(climate, by="host")
    assert len(by_host) == 2
    assert sum(reserved for reserved, _ in by_host.values()) == pytest.approx(4, abs=0.01)


def test_used_hours_are_those_between_samples_at_which_a_server_ran(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0, hours=4)
    run_due(climate)
    pool = str(lease.reservations[0].id)
    name = sorted(cloud.pools()[pool])[0]
    usage.run_round(climate)
    server = cloud.boot(MEMBER.project_id, name)
    for _ in range(30):
        clock.forward(minutes=1)
        usage.run_round(climate)
    cloud.change(server, "SHUTOFF")
    for _ in range(10):
        clock.forward(minutes=1)
        usage.run_round(climate)
    assert hours(climate) == {MEMBER.project_id: (round(80 / 60, 3), 0.5)}
    assert hours(climate, by="host")[name][1] == 0.5
    cloud.change(server, "ACTIVE")
    clock.forward(hours=1)
    usage.run_round(climate)
    used = hours(climate)[MEMBER.project_id][1]
    assert used == round(32 / 60, 3), "a worker that looked after an hour knows of two minutes"


def test_a_rebuild_computes_anew(climate: Climate, clock: Clock, engine: Engine) -> None:
    make(climate, clock, hosts_wanted(2), start=0, hours=1)
    run_due(climate)
    usage.run_round(climate)
    with engine.begin() as conn:
        before = sorted(map(str, conn.execute(select(lease_usage))))
        conn.execute(delete(lease_usage))
        conn.execute(update(usage_progress).values(position=10**9))
    usage.run_round(climate)
    rebuild.rebuild(climate)
    with engine.connect() as conn:
        assert sorted(map(str, conn.execute(select(lease_usage)))) == before
        assert before


def test_a_lease_that_cannot_be_read_stops_no_other(climate: Climate, clock: Clock, engine: Engine) -> None:
    leases_of = [make(climate, clock, start=0, hours=1) for _ in range(3)]
    run_due(climate)
    with engine.begin() as conn:
        conn.execute(
            text(
                "INSERT INTO journal (stream, version, kind, body, actor, request_id)"
                " VALUES (:stream, 99, 'LeasePraised', '{}', '{}', '')"
            ),
            {"stream": leases_of[1].id},
        )
    usage.run_round(climate)
    clock.forward(hours=2)
    assert hours(climate) == {MEMBER.project_id: (2, 0)}
    assert usage.recompute(climate) == 3


def test_another_process_that_computes_is_not_waited_for(climate: Climate, clock: Clock, engine: Engine) -> None:
    make(climate, clock, start=0)
    with engine.begin() as conn:
        assert host_hours.lock_state(conn) is not None
        assert usage.run_round(climate) == 0
    assert usage.run_round(climate) == 1
