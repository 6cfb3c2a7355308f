"""An import keeps ids, dates, states and hosts; what it cannot keep is refused with a reason."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import text

from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, NotEnoughHosts, NotFound
from climate.domain.facts import HostEnrolled
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.domain.status import DONE, ERROR, UNDONE, EventKind, LeaseStatus
from climate.service.blazar_import import importer
from climate.service.blazar_import.importer import Report, run_import
from climate.service.blazar_import.records import BlazarData
from climate.service.hosts import inventory, reconcile
from climate.service.journal import consistency_check
from climate.service.leases import leases, reservation_aggregates
from climate.service.leases.leases import LeaseRequest
from climate.store.hosts import pool_membership
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, Clock
from tests.service.blazar_import.conftest import PROJECT
from tests.service.blazar_import.recordings import number
from tests.service.lease_actions import run_due

REFUSED = {
    "vanished.example": "the cloud has no hypervisor named 'vanished.example'",
    "being-updated": "Blazar is working on it: its status is UPDATING",
    "of-another-plugin": "climate has no plugin for its resource type 'network:port'",
    "overlapping": f"its allocation of the host compute-2.example overlaps with the lease {number('next-hosts')}",
    "on-a-vanished-host": "its host 5 is not imported",
}


def imported(climate: Climate, data: BlazarData) -> dict[str, Lease]:
    run_import(climate, data)
    return by_name(climate)


def by_name(climate: Climate) -> dict[str, Lease]:
    return {lease.name: lease for lease in leases.listed(climate, ADMIN, Listing())}


def host_names(climate: Climate) -> dict[int, str]:
    return {host.id: host.name for host in inventory.listed(climate, ADMIN)}


def held(climate: Climate, lease: Lease) -> list[tuple[UUID, str, int]]:
    """The allocations of a lease: reservation, name of the host, slots."""
    names = host_names(climate)
    return sorted((one.id, names[hold.host], hold.slots) for one in lease.reservations for hold in one.holds)


def in_blazar(data: BlazarData, lease_id: UUID) -> list[tuple[UUID, str, int]]:
    """The same of a lease in Blazar, which has one row for each server."""
    names = {host.id: host.name for host in data.hosts}
    (lease,) = [one for one in data.leases if one.id == str(lease_id)]
    return sorted(
        (UUID(one.id), names[host], count if "instance" in one.resource_type else 0)
        for one in lease.reservations
        for host, count in Counter(one.hosts).items()
    )


def told(report: Report) -> dict[str, str]:
    return {refusal.name: refusal.reason for refusal in report.refusals}


def place(climate: Climate, name: str) -> tuple[Pool, UUID | None, bool]:
    with climate.engine.connect() as conn:
        (found,) = [one for one in pool_membership.listed(conn) if one.name == f"{name}.example"]
    return found.pool, found.reservation_id, found.reservable


def test_leases_keep_ids_dates_states_and_hosts(empty: Climate, recorded: BlazarData) -> None:
    kept = imported(empty, recorded)
    stored = {lease.name: lease for lease in recorded.leases}
    assert set(kept) == set(stored) - set(REFUSED)
    for name, lease in kept.items():
        original = stored[name]
        assert (str(lease.id), lease.project_id, lease.user_id) == (original.id, PROJECT, "user-of-leases")
        assert (lease.period.start, lease.period.end) == (original.start, original.end)
        assert (lease.status, lease.created_at) == (original.status, original.created_at)
        assert {(str(e.id), str(e.kind), e.due_at, str(e.status)) for e in lease.events} == {
            (e.id, e.kind, e.time, e.status) for e in original.events
        }
        assert held(empty, lease) == in_blazar(recorded, lease.id)
    assert consistency_check.differences(empty) == []


def test_requests_of_reservations_are_kept(empty: Climate, recorded: BlazarData) -> None:
    kept = imported(empty, recorded)
    hosts = kept["next-hosts"].reservations[0].spec
    assert (hosts["min"], hosts["max"], hosts["before_end"], hosts["on_end"]) == (1, 3, "snapshot", "terminate")
    assert kept["active-hosts"].reservations[0].spec["resource_properties"] == '[">=", "$gpu_count", "2"]'
    servers = kept["next-servers"].reservations[0].spec
    assert {key: servers[key] for key in ("vcpus", "memory_mb", "disk_gb", "amount", "affinity")} == {
        "vcpus": 2,
        "memory_mb": 4096,
        "disk_gb": 20,
        "amount": 1,
        "affinity": False,
    }
    assert servers["flavor_id"] == str(number("next-servers 0"))
    short = kept["short-of-hosts"]
    assert (short.reservations[0].missing, short.degraded) == (1, True)


def test_addresses_are_kept(empty: Climate, recorded: BlazarData) -> None:
    kept = imported(empty, recorded)
    addresses = {one.resource_type: [hold.address for hold in one.addresses] for one in kept["two-kinds"].reservations}
    assert sorted(addresses.pop("virtual:floatingip")) == ["203.0.113.10", "203.0.113.11"]
    assert addresses == {"physical:host": []}
    with empty.engine.connect() as conn:
        known = set(conn.scalars(text("SELECT id FROM floating_ips")))
    assert known == {number(f"203.0.113.{last}") for last in (10, 11, 12)}


def test_hosts_keep_numbers_capabilities_and_aggregates(empty: Climate, recorded: BlazarData) -> None:
    run_import(empty, recorded)
    names = {name.removesuffix(".example"): host for host, name in host_names(empty).items()}
    assert {name: names[f"compute-{name}"] for name in "12367"} == {name: int(name) for name in "12367"}
    assert names["compute-4"] > 7, "its UUID is no number"
    assert inventory.get(empty, ADMIN, "1").extra == {"gpu_count": "2", "rack": "r1"}
    assert {one.name: one.private for one in inventory.properties(empty, ADMIN, private=True)}["rack"] is True
    assert place(empty, "compute-1") == (Pool.LENT, number("active-hosts 0"), True)
    assert place(empty, "compute-2") == (Pool.RESERVATION, None, True)
    assert place(empty, "compute-6") == (Pool.RESERVATION, None, False)


def test_what_cannot_be_kept_is_refused_with_a_reason(empty: Climate, recorded: BlazarData) -> None:
    report = run_import(empty, recorded)
    assert told(report) == REFUSED
    assert all(refusal.remedy for refusal in report.refusals)
    assert (report.hosts, report.addresses, report.leases) == (6, 3, 10)


def test_a_dry_run_reports_the_same_and_writes_nothing(empty: Climate, recorded: BlazarData) -> None:
    expected = run_import(empty, recorded, dry_run=True)
    assert (by_name(empty), host_names(empty)) == ({}, {})
    with empty.engine.connect() as conn:
        assert conn.scalar(text("SELECT count(*) FROM journal")) == 0
    assert run_import(empty, recorded) == expected


def test_nothing_is_moved_in_the_cloud(empty: Climate, cloud: FakeCloud, recorded: BlazarData) -> None:
    before, cloud.calls[:] = dict(cloud.pools()), []
    run_import(empty, recorded)
    assert {method for method, _ in cloud.calls} <= {"health", "pools", "servers_on"}
    assert reconcile.correct(empty) == 0, "the aggregates are what the database says"
    assert cloud.pools() == before


def test_a_started_lease_ends_as_if_climate_had_started_it(
    empty: Climate, cloud: FakeCloud, clock: Clock, recorded: BlazarData
) -> None:
    run_import(empty, recorded)
    clock.forward(hours=3)
    run_due(empty)
    kept = by_name(empty)
    assert kept["active-hosts"].status == LeaseStatus.TERMINATED
    assert cloud.server("running") is None
    # The next lease, from that moment on, has the host and another one.
    assert kept["next-hosts"].status == LeaseStatus.ACTIVE
    assert cloud.pools()[str(number("next-hosts 0"))] == {"compute-1.example", "compute-2.example"}
    assert consistency_check.differences(empty) == []


def test_an_imported_lease_that_has_not_begun_can_be_deleted(
    empty: Climate, cloud: FakeCloud, recorded: BlazarData
) -> None:
    """Blazar has created its aggregate, so the end has to run."""
    kept = imported(empty, recorded)
    leases.delete(empty, ADMIN, kept["next-hosts"].id)
    run_due(empty)
    with pytest.raises(NotFound):
        leases.get(empty, ADMIN, kept["next-hosts"].id)
    assert ("take_back", str(number("next-hosts 0"))) in cloud.calls
    assert place(empty, "compute-1")[0] is Pool.LENT, "the active lease keeps its host"


def test_no_new_lease_gets_an_imported_allocation(empty: Climate, clock: Clock, recorded: BlazarData) -> None:
    run_import(empty, recorded)
    wanted = {"resource_type": "physical:host", "min": 1, "max": 9}
    start, end = clock.time + timedelta(hours=3), clock.time + timedelta(hours=4)
    with pytest.raises(NotEnoughHosts, match="5 match, 0 of them free; it would fit from 2030-01-01 16:00:00 UTC"):
        leases.create(empty, ADMIN, LeaseRequest("new", start, end, reservations=[wanted]))


def test_a_failed_start_stays_failed(empty: Climate, recorded: BlazarData) -> None:
    lease = imported(empty, recorded)["failed-start"]
    assert (lease.status, lease.event(EventKind.START).reason) == (LeaseStatus.ERROR, "failed in Blazar")
    assert [lease.event(kind).status for kind in (EventKind.START, EventKind.END)] == [ERROR, UNDONE]


def test_a_lease_that_is_over_is_history(empty: Climate, recorded: BlazarData) -> None:
    lease = imported(empty, recorded)["over"]
    assert {event.status for event in lease.events} == {DONE}
    facts = [type(entry.fact).__name__ for entry in leases.history(empty, ADMIN, lease.id)]
    assert facts == ["LeaseCreated", *("EventClaimed", "EventFinished") * 3]


def test_a_second_import_needs_resume_and_changes_nothing(empty: Climate, recorded: BlazarData) -> None:
    first = run_import(empty, recorded)
    with pytest.raises(Conflict, match=r"10 leases and 9 hosts and floating IPs are here already.*--resume"):
        run_import(empty, recorded)
    with empty.engine.connect() as conn:
        before = conn.scalar(text("SELECT count(*) FROM journal"))
    again = run_import(empty, recorded, resume=True)
    assert (again.hosts, again.addresses, again.leases, again.known) == (0, 0, 0, first.leases)
    assert set(told(again)) == set(REFUSED)
    with empty.engine.connect() as conn:
        assert conn.scalar(text("SELECT count(*) FROM journal")) == before


def test_an_interrupted_import_is_resumed(empty: Climate, recorded: BlazarData) -> None:
    """An error in the second transaction leaves the leases in force, and lacks those that are over."""
    (over,) = [lease for lease in recorded.leases if lease.name == "over"]
    twice = replace(over, id=str(number("twice")))  # its reservation has the id of another, which the database refuses
    with pytest.raises(Conflict, match="--resume"):
        run_import(empty, replace(recorded, leases=(*recorded.leases, twice)))
    assert "over" not in by_name(empty)
    assert len(by_name(empty)) == 9
    report = run_import(empty, recorded, resume=True)
    assert (report.leases, report.known) == (1, 9)
    assert len(by_name(empty)) == 10
    assert consistency_check.differences(empty) == []


def test_what_was_refused_is_imported_after_a_correction(
    empty: Climate, cloud: FakeCloud, recorded: BlazarData
) -> None:
    run_import(empty, recorded)
    cloud.set_hosts([*cloud.hosts.values(), replace(cloud.hosts["compute-7.example"], name="vanished.example")])
    report = run_import(empty, recorded, resume=True)
    assert (report.hosts, report.leases, report.known) == (1, 1, 10)
    assert by_name(empty)["on-a-vanished-host"].reservations[0].hosts == (5,)


def test_a_resumed_import_sees_the_leases_that_were_created_since(
    empty: Climate, clock: Clock, recorded: BlazarData
) -> None:
    (late,) = [lease for lease in recorded.leases if lease.name == "two-kinds"]
    run_import(empty, replace(recorded, leases=tuple(lease for lease in recorded.leases if lease != late)))
    wanted = {"resource_type": "physical:host", "min": 6, "max": 6}
    with pytest.raises(Conflict):
        leases.create(empty, ADMIN, LeaseRequest("new", late.start, late.end, reservations=[wanted]))
    wanted = {"resource_type": "physical:host", "min": 5, "max": 5}
    made = leases.create(empty, ADMIN, LeaseRequest("new", late.start, late.end, reservations=[wanted]))
    report = run_import(empty, recorded, resume=True)
    assert (
        told(report)["two-kinds"] == f"its allocation of the host compute-2.example overlaps with the lease {made.id}"
    )


def numbers(*host_ids: str) -> Sequence[int | None]:
    return [importer._number(host_id) for host_id in host_ids]


def test_ids_of_hosts_become_numbers_where_they_can() -> None:
    assert numbers("1", "2147483647") == [1, 2147483647]
    assert numbers("0", "2147483648", "-1", "x", str(number("x")), "٣", "") == [None] * 7


def test_a_host_number_that_is_taken_is_replaced(empty: Climate, cloud: FakeCloud, recorded: BlazarData) -> None:
    cloud.set_hosts([*cloud.hosts.values(), replace(cloud.hosts["compute-7.example"], name="another")])
    known = inventory.register(empty, ADMIN, "another", {})
    run_import(empty, recorded)
    names = {name: host for host, name in host_names(empty).items()}
    assert names["another"] == known.id
    assert len(set(names.values())) == len(names) == 7
    assert consistency_check.differences(empty) == []
    with empty.engine.connect() as conn:
        created = conn.scalar(text("SELECT count(*) FROM journal WHERE kind = :kind"), {"kind": HostEnrolled.__name__})
    assert created == 7


def test_pools_of_reservations_are_known_after_a_reconciliation(
    empty: Climate, cloud: FakeCloud, recorded: BlazarData
) -> None:
    kept = imported(empty, recorded)
    reservation_aggregates.reconcile(empty)
    lease = leases.get(empty, ADMIN, kept["active-hosts"].id)
    assert lease.reservations[0].aggregate_id == cloud.lease_pools()[str(number("active-hosts 0"))].id
