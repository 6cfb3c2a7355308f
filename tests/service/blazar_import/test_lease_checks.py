"""Leases of Blazar that climate cannot keep, one by one."""

from dataclasses import replace

import pytest

from climate.domain.hosts.shared_capacity import Size
from climate.service.blazar_import.lease_checks import NotKept, capacity, convert
from climate.service.blazar_import.records import BlazarEvent, BlazarLease
from tests.service.blazar_import.blazar_factory import host, hour, lease, servers
from tests.service.blazar_import.recordings import number

TYPES = frozenset({"physical:host", "virtual:instance"})
EVENT = BlazarEvent(str(number("more")), "start_lease", hour(1), "UNDONE")


def with_states(start: str, end: str, status: str) -> BlazarLease:
    plain = lease("a", "1", status=status)
    states = (start, end)
    return replace(plain, events=tuple(replace(e, status=s) for e, s in zip(plain.events, states, strict=True)))


@pytest.mark.parametrize(
    ("refused", "says"),
    [
        (lease("a", status="UPDATING"), "its status is UPDATING"),
        (lease("a", status=""), "its status is empty"),
        (with_states("IN_PROGRESS", "UNDONE", "ERROR"), "an event is IN_PROGRESS"),
        (with_states("UNDONE", "DONE", "TERMINATED"), "start_lease is UNDONE, end_lease is DONE"),
        (with_states("UNDONE", "UNDONE", "ACTIVE"), "its status ACTIVE contradicts its events: UNDONE, UNDONE"),
        (with_states("DONE", "DONE", "ERROR"), "its status ERROR contradicts its events"),
        (with_states("DONE", "UNDONE", "TERMINATED"), "its status TERMINATED contradicts"),
        (with_states("LOST", "UNDONE", "ERROR"), "an event has the status LOST"),
        (replace(lease("a"), events=()), "it has 0 events start_lease, 0 end_lease and 0 before_end_lease"),
        (replace(lease("a"), events=(*lease("a").events, EVENT)), "it has 2 events start_lease"),
        (replace(lease("a"), events=(replace(EVENT, kind="other"),)), "its event 'other' is none of Blazar's"),
        (replace(lease("a"), events=(replace(EVENT, id="1"),)), "the id '1' of its event is no UUID"),
        (replace(lease("a"), id="7"), "the id '7' of its lease is no UUID"),
        (replace(lease("a"), project_id=""), "it has no project"),
        (replace(lease("a"), end=hour(1)), "its dates 2030-01-01 13:00 and 2030-01-01 13:00 are no period"),
        (lease("a", "1", wanted=None), "has no row with the request"),
    ],
)
def test_a_lease_that_cannot_be_kept_is_refused(refused: BlazarLease, says: str) -> None:
    with pytest.raises(NotKept) as error:
        convert(refused, TYPES)
    assert says in error.value.reason
    assert error.value.remedy


@pytest.mark.parametrize("status", ["PENDING", "ACTIVE", "TERMINATED", "ERROR"])
def test_leases_at_rest_are_kept(status: str) -> None:
    kept = convert(lease("a", "1", status=status), TYPES)
    assert (kept.id, kept.is_active) == (number("a"), status == "ACTIVE")


def test_a_type_without_a_plugin_is_refused() -> None:
    with pytest.raises(NotKept) as error:
        convert(lease("a", "1"), frozenset())
    assert error.value.reason == "climate has no plugin for its resource type 'physical:host'"
    assert "CLIMATE_RESOURCE_PLUGINS" in error.value.remedy


@pytest.mark.parametrize(
    ("affinity", "hosts", "is_refused"),
    [(None, "12", False), (True, "11", False), (True, "12", True), (False, "1", False), (False, "12", True)],
)
def test_servers_in_a_group_start_only_where_the_cloud_has_groups(
    affinity: bool | None, hosts: str, is_refused: bool
) -> None:
    wanted = lease("a", hosts, wanted=servers(len(hosts), affinity=affinity))
    convert(wanted, TYPES)
    convert(lease("a", hosts, status="ACTIVE", wanted=servers(2, affinity=False)), TYPES, has_groups=False)
    if is_refused:
        with pytest.raises(NotKept, match="server group with a chosen id"):
            convert(wanted, TYPES, has_groups=False)
    else:
        convert(wanted, TYPES, has_groups=False)


def test_the_size_of_a_host_counts_overcommitment() -> None:
    assert capacity(host("1")) == Size(8, 8192, 100)
    assert capacity(replace(host("1"), amounts={"VCPU": 32, "MEMORY_MB": 4096})) == Size(32, 8192, 100)
