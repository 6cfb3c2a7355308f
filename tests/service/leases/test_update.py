"""A lease is changed as a whole, or refused and left just as it was."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import (
    Busy,
    Conflict,
    InvalidInput,
    InvalidPeriod,
    NotEnoughHosts,
    NotFound,
    PreconditionFailed,
)
from climate.domain.lease import Lease
from climate.domain.status import DONE, LeaseStatus
from climate.service.hosts import inventory
from climate.service.journal import consistency_check
from climate.service.leases import leases, update
from climate.service.leases.update import Changes
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service import lease_actions
from tests.service.lease_actions import (
    ADJUST,
    END,
    START,
    begin,
    claim,
    get,
    held,
    hosts_wanted,
    make,
    reservation,
    rows,
    run_due,
)

GPU: dict[str, Any] = {"resource_properties": '[">", "$gpu_count", "1"]'}


def change(climate: Climate, lease: Lease, **what: Any) -> Lease:
    return update.update(climate, MEMBER, lease.id, Changes(**what))


def size(lease: Lease, least: int, most: int | None = None, **more: Any) -> list[Mapping[str, Any]]:
    return [{"id": reservation(lease), "min": least, "max": most or least, **more}]


def test_a_new_name_is_always_accepted(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, start=0)
    claim(climate)
    assert change(climate, lease, name="while it starts").name == "while it starts"
    clock.forward(hours=9)
    assert change(climate, lease, name="long over").name == "long over"
    assert change(climate, lease, name="long over").version == 4, "nothing is recorded where nothing changes"


def test_a_pending_lease_moves_freely(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(4, **GPU), start=1, hours=2)
    begin = clock.time + timedelta(hours=10)
    moved = change(climate, lease, start=begin, end=begin + timedelta(hours=1))
    assert held(moved) == held(lease)
    assert {hold.during for r in moved.reservations for hold in r.holds} == {moved.period}
    assert {e.kind: e.due_at for e in moved.events} == {START: begin, END: begin + timedelta(hours=1)}
    assert make(climate, clock, hosts_wanted(8), start=1, hours=2)
    assert consistency_check.differences(climate) == []


def test_a_pending_lease_takes_other_hosts_where_its_own_are_promised(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(4), start=1, hours=1)
    others = make(climate, clock, hosts_wanted(4), start=2, hours=1)
    longer = change(climate, lease, end=others.period.end)
    assert not held(longer) & held(others)
    assert len(held(longer)) == 4


def test_reservations_of_one_lease_never_share_a_host_after_a_change(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(2), hosts_wanted(3))
    specs = [{"id": str(r.id), "min": 4, "max": 4} for r in lease.reservations]
    grown = change(climate, lease, reservations=specs, end=lease.period.end + timedelta(hours=3))
    assert [len(r.hosts) for r in grown.reservations] == [4, 4]
    assert len(held(grown)) == 8


REFUSED: list[tuple[dict[str, Any], type[Exception]]] = [
    ({"hours": 3}, NotEnoughHosts),
    ({"hours": -0.5}, InvalidPeriod),
    ({"hours": 24 * 800}, InvalidPeriod),
    ({"size": (9, 9)}, NotEnoughHosts),
    ({"size": (3, 2)}, InvalidInput),
    ({"hours": 3, "name": "x"}, NotEnoughHosts),
    ({"stranger": True}, InvalidInput),
    ({"type": "virtual:instance"}, Conflict),
]


@pytest.mark.parametrize(("what", "error"), REFUSED)
def test_a_refused_change_leaves_rows_and_journal_as_they_were(
    climate: Climate, clock: Clock, engine: Engine, what: dict[str, Any], error: type[Exception]
) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=1, hours=1)
    make(climate, clock, hosts_wanted(8), start=3, hours=1)
    before = rows(engine)
    specs: list[Mapping[str, Any]] = size(lease, *what["size"]) if "size" in what else []
    specs += [{"id": str(lease.id), "min": 1}] if "stranger" in what else []
    specs += [{"id": reservation(lease), "resource_type": what["type"]}] if "type" in what else []
    end = clock.time + timedelta(hours=1 + what["hours"]) if "hours" in what else None
    with pytest.raises(error):
        change(climate, lease, name=what.get("name"), end=end, reservations=specs)
    assert rows(engine) == before


def test_other_peoples_leases_and_old_versions_are_refused(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = make(climate, clock)
    before = rows(engine)
    with pytest.raises(NotFound):
        update.update(climate, STRANGER, lease.id, Changes(name="mine"))
    with pytest.raises(PreconditionFailed, match="version 1, not 2"):
        update.update(climate, MEMBER, lease.id, Changes(name="x"), version=2)
    with pytest.raises(PreconditionFailed):
        leases.delete(climate, MEMBER, lease.id, version=2)
    assert rows(engine) == before
    assert update.update(climate, ADMIN, lease.id, Changes(name="x"), version=1).version == 2


def test_shrinking_asks_nobody_for_hosts(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = make(climate, clock, hosts_wanted(3), start=1, hours=3)
    seen: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *executed: seen.append(executed[2]))
    short = change(climate, lease, end=lease.period.end - timedelta(hours=1))
    assert not [statement for statement in seen if "FROM hosts" in statement or "advisory" in statement]
    assert {hold.during for hold in short.reservations[0].holds} == {short.period}
    assert held(short) == held(lease)


def test_an_active_lease_is_prolonged_with_its_own_hosts_only(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(4, **GPU), start=0, hours=1)
    run_due(climate)
    longer = change(climate, lease, end=lease.period.end + timedelta(hours=1))
    assert held(longer) == held(lease)
    after = make(climate, clock, hosts_wanted(8), start=3, hours=1)
    with pytest.raises(Conflict, match="can last until 2030-01-01 15:00:00 UTC at most"):
        change(climate, lease, end=after.period.start + timedelta(seconds=1))
    assert change(climate, lease, end=after.period.start).period.end == after.period.start


def test_cleaning_time_counts_when_prolonging(cleaned: Climate, clock: Clock) -> None:
    lease = make(cleaned, clock, hosts_wanted(8), start=0, hours=1)
    make(cleaned, clock, hosts_wanted(8), start=3, hours=1)
    run_due(cleaned)
    with pytest.raises(Conflict, match="can last until 2030-01-01 14:50:00 UTC at most"):
        change(cleaned, lease, end=clock.time + timedelta(hours=2, minutes=51))
    longer = change(cleaned, lease, end=clock.time + timedelta(hours=2, minutes=50))
    (during,) = {hold.during for hold in longer.reservations[0].holds}
    assert (during.start, during.end) == (longer.period.start, longer.period.end + timedelta(minutes=10))
    cut = change(cleaned, lease, end=clock.time + timedelta(hours=1))
    assert {hold.during.end for hold in cut.reservations[0].holds} == {cut.period.end + timedelta(minutes=10)}


def test_an_active_lease_grows_by_an_adjustment_and_keeps_what_it_has(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    lease = make(climate, clock, hosts_wanted(2), start=0, hours=2)
    run_due(climate)
    clock.forward(minutes=10)
    grown = change(climate, lease, reservations=size(lease, 5))
    assert held(lease) < held(grown)
    assert (grown.status, len(cloud.pools()[reservation(lease)])) == (LeaseStatus.ACTIVE, 2)
    run_due(climate)
    assert lease_actions.event(climate, lease, ADJUST).status is DONE
    assert len(cloud.pools()[reservation(lease)]) == 5
    clock.forward(minutes=10)
    change(climate, lease, reservations=size(lease, 6))
    run_due(climate)
    assert len(cloud.pools()[reservation(lease)]) == 6
    with pytest.raises(NotEnoughHosts):
        change(climate, lease, reservations=size(lease, 1))
    clock.forward(hours=2)
    run_due(climate)
    assert len(cloud.pools()["freepool"]) == 8


def test_an_active_lease_keeps_hosts_that_match_no_more(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(2, **GPU), start=0, hours=2)
    run_due(climate)
    clock.forward(minutes=10)
    other = size(lease, 3, resource_properties="", hypervisor_properties='["==", "$vcpus", "4"]')
    grown = change(climate, lease, reservations=other)
    assert held(lease) < held(grown)
    assert len(held(grown) & {1, 2, 3, 4}) == 1


def test_ending_now(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = make(climate, clock, hosts_wanted(8), start=0, hours=2)
    run_due(climate)
    clock.forward(minutes=30, seconds=10)
    ended = change(climate, lease, end_now=True)
    assert ended.period.end == clock.time
    following = make(climate, clock, hosts_wanted(8), start=0)
    run_due(climate)
    assert [get(climate, one).status for one in (lease, following)] == [LeaseStatus.TERMINATED, LeaseStatus.ACTIVE]
    with pytest.raises(InvalidInput, match="can only be renamed"):
        change(climate, lease, end=clock.time + timedelta(hours=1))


def test_no_change_while_an_event_runs(climate: Climate, clock: Clock, engine: Engine) -> None:
    lease = make(climate, clock, start=0)
    begin(climate)
    before = rows(engine)
    for what in ({"end": lease.period.end + timedelta(hours=1)}, {"reservations": size(lease, 2)}, {"end_now": True}):
        clock.forward(seconds=1)
        with pytest.raises(Busy):
            change(climate, lease, **what)
    with pytest.raises(Busy):
        leases.delete(climate, MEMBER, lease.id)
    assert rows(engine) == before


def test_deleting_gives_everything_back(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    pending, active = make(climate, clock, hosts_wanted(4)), make(climate, clock, hosts_wanted(4), start=0, hours=9)
    run_due(climate)
    assert leases.delete(climate, MEMBER, pending.id).gone
    assert leases.delete(climate, MEMBER, active.id).status is LeaseStatus.DELETING
    run_due(climate)
    for lease in (pending, active):
        with pytest.raises(NotFound):
            get(climate, lease)
        with pytest.raises(NotFound):
            leases.delete(climate, MEMBER, lease.id)
        assert lease_actions.kinds(climate, lease)[-1] == "LeaseDeleted", "the history stays"
    assert len(cloud.pools()["freepool"]) == 8
    assert make(climate, clock, hosts_wanted(8), start=0, hours=99)
    assert consistency_check.differences(climate) == []


def test_what_was_granted_is_prolonged_whatever_has_become_private(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, hosts_wanted(1, **GPU))
    inventory.set_private(climate, ADMIN, "gpu_count", True)
    longer = change(climate, lease, end=lease.period.end + timedelta(hours=1))
    assert held(longer) == held(lease)
    with pytest.raises(InvalidInput, match="gpu_count"):
        change(climate, lease, reservations=size(lease, 1, resource_properties='[">", "$gpu_count", "0"]'))
