"""Servers on what is lent, and servers that sleep until their lease."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Connection, Engine, event, text

from climate.cloud import ACTIVE, ERROR, RESERVED, SHUTOFF, SUSPENDED, CloudError
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import ClimateError, Conflict, InvalidInput, InvalidPeriod, NotFound, Unavailable, Undecided
from climate.domain.lease import Lease
from climate.domain.status import LeaseStatus
from climate.service.journal import consistency_check
from climate.service.leases import lease_servers, leases
from climate.store.engine import connect
from climate.store.leases.leases import Listing
from tests.conftest import ADMIN, MEMBER, STRANGER, Clock
from tests.service import lease_actions
from tests.service.lease_actions import START, get, make, reservation, rows, run_due

LATER: Mapping[str, Any] = {"start": "2030-01-01 13:00", "end": "2030-01-01 15:00"}


def reserve(climate: Climate, cloud: FakeCloud, **params: Any) -> Lease:
    def sleeping(server_id: str) -> None:
        cloud.boot("project", status=RESERVED, server_id=server_id)

    return lease_servers.reserve(climate, MEMBER, {**LATER, **params}, sleeping)


def status(cloud: FakeCloud, lease: Lease) -> str | None:
    server = cloud.server(str(lease.reservations[0].resource_id))
    return server.status if server else None


def test_only_on_an_active_lease_of_ones_own(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock)
    with pytest.raises(Conflict, match="is PENDING: it starts at 2030-01-01 13:00:00 UTC"):
        lease_servers.admit(climate, MEMBER, reservation(lease))
    clock.forward(hours=1)
    run_due(climate)
    assert lease_servers.admit(climate, MEMBER, reservation(lease)).id == lease.id
    for caller in (STRANGER, ADMIN):
        with pytest.raises(NotFound):
            lease_servers.admit(climate, caller, reservation(lease))
    with pytest.raises(InvalidInput):
        lease_servers.admit(climate, MEMBER, "r1")
    with pytest.raises(NotFound):
        lease_servers.admit(climate, MEMBER, str(uuid4()))
    clock.forward(hours=2)
    run_due(climate)
    with pytest.raises(Conflict, match="TERMINATED: nothing can boot on it"):
        lease_servers.admit(climate, MEMBER, reservation(lease))


def test_servers_on_the_hosts_of_another_cloud_are_booted_there(
    climate: Climate, cloud: FakeCloud, clock: Clock
) -> None:
    lease = make(climate, clock)
    clock.forward(hours=1)
    run_due(climate)
    lender = replace(climate, settings=replace(climate.settings, cloud="openstack"))
    with pytest.raises(Conflict, match="boot their servers there"):
        lease_servers.admit(lender, MEMBER, reservation(lease))
    with pytest.raises(Conflict, match="boot their servers there"):
        reserve(lender, cloud)
    assert list(cloud.sleeping()) == []


@pytest.mark.parametrize(
    ("on_end", "after"), [("delete", None), ("suspend", SUSPENDED), ("create_image, suspend", SUSPENDED)]
)
def test_a_server_sleeps_wakes_and_ends_as_asked(
    climate: Climate, clock: Clock, cloud: FakeCloud, on_end: str, after: str | None
) -> None:
    lease = reserve(climate, cloud, on_end=on_end)
    assert status(cloud, lease) == RESERVED
    clock.forward(hours=1)
    cloud.looks_until_awake = 2
    lease_actions.settle(climate, clock, hours=0.1)
    assert (status(cloud, lease), get(climate, lease).status) == (ACTIVE, LeaseStatus.ACTIVE)
    clock.time = lease.period.end
    cloud.looks_until_gone = 2
    lease_actions.settle(climate, clock, hours=0.1)
    assert (status(cloud, lease), get(climate, lease).status) == (after, LeaseStatus.TERMINATED)
    assert len(cloud.images) == ("image" in on_end)
    assert consistency_check.differences(climate) == []


def test_additional_events_may_be_named_with_the_server(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    events = [{"event_type": "notification", "event_date": "2030-01-01 14:00"}]
    lease = reserve(climate, cloud, events=events)
    clock.forward(hours=2)
    run_due(climate)
    told = [(one.name, f"{one.due_at:%H:%M}", one.status) for one in get(climate, lease).events if one.name]
    assert told == [("notification", "14:00", "DONE")]


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ("soon", "must be a list of 64 events at most"),
        ([{"event_type": "a", "event_date": "2030-01-01 14:00"}] * 65, "must be a list of 64 events at most"),
        ([7], "an event must be an object like"),
        ([{"event_type": "a"}], "an event must be an object like"),
        ([{"event_type": "1", "event_date": "2030-01-01 14:00"}], "event_type must be 1 to 64 letters"),
        ([{"event_type": 7, "event_date": "2030-01-01 14:00"}], "event_type must be 1 to 64 letters"),
        ([{"event_type": "a", "event_date": "noon"}], "noon is an invalid date"),
        ([{"event_type": "a", "event_date": "2030-01-01 16:00"}], "event_date of a must lie between"),
        ([{"event_type": "start_lease", "event_date": "2030-01-01 14:00"}], "belongs to the lease itself"),
    ],
)
def test_additional_events_that_cannot_be_leave_no_server(
    climate: Climate, cloud: FakeCloud, events: Any, said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        reserve(climate, cloud, events=events)
    assert list(cloud.sleeping()) == []


def test_a_lease_that_is_deleted_before_its_start_takes_its_server_along(climate: Climate, cloud: FakeCloud) -> None:
    lease = reserve(climate, cloud, on_end="suspend")
    assert leases.delete(climate, MEMBER, lease.id).status is LeaseStatus.DELETING
    run_due(climate)
    assert status(cloud, lease) is None
    with pytest.raises(NotFound):
        get(climate, lease)


def test_a_server_in_error_says_why(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = reserve(climate, cloud)
    cloud.change(str(lease.reservations[0].resource_id), ERROR, "no valid host")
    clock.forward(hours=1)
    run_due(climate)
    assert "no valid host" in str(lease_actions.event(climate, lease, START).reason)


@pytest.mark.parametrize("as_it_is", [SHUTOFF, SUSPENDED])
def test_a_server_that_its_user_put_down_has_been_woken_all_the_same(
    climate: Climate, clock: Clock, cloud: FakeCloud, as_it_is: str
) -> None:
    lease = reserve(climate, cloud)
    cloud.change(str(lease.reservations[0].resource_id), as_it_is)
    clock.forward(hours=1)
    run_due(climate)
    assert get(climate, lease).status is LeaseStatus.ACTIVE


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"end": "2030-01-01 12:30"}, InvalidPeriod),
        ({"start": "2029-01-01 12:30"}, InvalidPeriod),
        ({"before_end": "2031-01-01 12:30"}, InvalidInput),
        ({"end": None}, InvalidInput),
        ({"colour": "red"}, InvalidInput),
        ({"name": ""}, InvalidInput),
        ({"end": "soon"}, InvalidInput),
    ],
)
def test_a_refused_lease_leaves_no_server(
    climate: Climate, engine: Engine, cloud: FakeCloud, params: dict[str, Any], error: type[ClimateError]
) -> None:
    before = rows(engine)
    with pytest.raises(error):
        reserve(climate, cloud, **params)
    assert cloud.sleeping() == []
    assert rows(engine) == before


@pytest.mark.parametrize("verb", ["server", "delete_server"])
def test_neither_server_nor_lease_when_it_fails_half_way(
    climate: Climate, clock: Clock, cloud: FakeCloud, verb: str
) -> None:
    cloud.failures = {"server": CloudError("away"), verb: CloudError("away")}
    with pytest.raises(Unavailable):
        reserve(climate, cloud)
    assert leases.listed(climate, MEMBER, Listing()) == []
    cloud.failures = {}
    assert len(cloud.sleeping()) == (verb == "delete_server"), "what could not be deleted is left to the sweep"
    clock.forward(minutes=2)
    lease_servers.sweep(climate)
    assert cloud.sleeping() == []


def test_a_server_whose_lease_may_be_there_is_left_to_the_sweep(
    climate: Climate, clock: Clock, cloud: FakeCloud, engine: Engine, database_url: str
) -> None:
    other = connect(database_url, pool_size=1)

    def cut(conn: Connection) -> None:
        ours = conn.connection.driver_connection.info.backend_pid  # type: ignore[union-attr]
        with other.connect() as killer:
            killer.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), {"pid": ours})

    event.listen(engine, "commit", cut)
    with pytest.raises(Undecided, match="check if the request took effect"):
        reserve(climate, cloud)
    event.remove(engine, "commit", cut)
    other.dispose()
    assert len(cloud.sleeping()) == 1
    clock.forward(minutes=2)
    assert len(lease_servers.sweep(climate)) == 1, "this time it was not"


def test_the_sweep_leaves_alone_what_has_a_lease(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    lease = reserve(climate, cloud)
    clock.forward(minutes=5)
    assert lease_servers.sweep(climate) == []
    assert status(cloud, lease) == RESERVED


def test_a_server_that_is_deleted_while_it_sleeps_ends_its_lease(climate: Climate, cloud: FakeCloud) -> None:
    lease = reserve(climate, cloud)
    server_id = str(lease.reservations[0].resource_id)
    given_up = lease_servers.end_reservation(climate, MEMBER, server_id)
    assert given_up is not None
    assert given_up.deleting
    cloud.delete_server(server_id, 0)
    run_due(climate)
    with pytest.raises(NotFound):
        get(climate, lease)
    assert not [fact for fact in lease_actions.kinds(climate, lease) if fact == "EventFailed"]
    assert lease_servers.end_reservation(climate, MEMBER, server_id) is None


def test_a_lease_of_more_goes_on_without_a_server_that_was_deleted(
    climate: Climate, clock: Clock, cloud: FakeCloud
) -> None:
    servers = [cloud.boot("project", status=RESERVED) for _ in range(2)]
    wanted = [{"resource_type": "virtual:instance", "resource_id": one} for one in servers]
    lease = make(climate, clock, *wanted)
    lease_servers.end_reservation(climate, MEMBER, servers[0])
    cloud.delete_server(servers[0], 0)
    clock.forward(hours=1)
    run_due(climate)
    after = get(climate, lease)
    assert after.status is LeaseStatus.ACTIVE
    assert [one.spec.get("given_up") for one in after.reservations] == [True, None]
    woken = cloud.server(servers[1])
    assert woken is not None
    assert woken.status == ACTIVE


def test_the_last_server_of_a_lease_that_is_deleted_ends_it(climate: Climate, clock: Clock, cloud: FakeCloud) -> None:
    servers = [cloud.boot("project", status=RESERVED) for _ in range(2)]
    lease = make(climate, clock, *({"resource_type": "virtual:instance", "resource_id": one} for one in servers))
    for one in servers:
        lease_servers.end_reservation(climate, MEMBER, one)
        cloud.delete_server(one, 0)
    run_due(climate)
    with pytest.raises(NotFound):
        get(climate, lease)


def test_a_server_of_another_project_gives_up_no_lease(climate: Climate, cloud: FakeCloud) -> None:
    lease = reserve(climate, cloud)
    with pytest.raises(NotFound):
        lease_servers.end_reservation(climate, STRANGER, str(lease.reservations[0].resource_id))
    assert not get(climate, lease).deleting
