"""One server is in one lease, and a repeated request for it gets the first answer."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from climate.cloud import RESERVED
from climate.cloud.fake import FakeCloud
from climate.context import Climate
from climate.domain.errors import Conflict, InvalidInput, NotFound
from climate.domain.lease import Lease
from climate.service.leases import lease_servers, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.store.idempotency import Key
from tests.conftest import MEMBER, Clock
from tests.service.lease_actions import hosts_wanted, make, reservation, run_due


def lease_of(climate: Climate, clock: Clock, server_id: str, key: Key | None = None) -> Lease:
    spec = {"resource_type": "virtual:instance", "resource_id": server_id}
    start = clock.time + timedelta(hours=1)
    return leases.create(climate, MEMBER, LeaseRequest("s", start, start + timedelta(hours=1), None, [spec]), key)


def test_a_server_is_in_one_lease_at_a_time(climate: Climate, cloud: FakeCloud, clock: Clock) -> None:
    server_id = cloud.boot("project", status=RESERVED)

    def attempt(_: int) -> str:
        try:
            return lease_of(climate, clock, server_id).name
        except Conflict as error:
            return str(error)

    cloud.watch = None  # other requests may well be in their transactions meanwhile
    with ThreadPoolExecutor(4) as pool:
        said = sorted(pool.map(attempt, range(4)))
    assert said == ["The server " + server_id + " is in another lease already"] * 3 + ["s"]


def test_a_repeated_request_needs_no_server_any_more(climate: Climate, cloud: FakeCloud, clock: Clock) -> None:
    server_id, key = cloud.boot("project", status=RESERVED), Key("k", "fingerprint")
    made = lease_of(climate, clock, server_id, key)
    cloud.delete_server(server_id, 0)
    assert lease_of(climate, clock, server_id, key) == made
    with pytest.raises(NotFound):
        lease_of(climate, clock, server_id, Key("other", "fingerprint"))


def test_a_hint_is_the_id_as_it_is_shown(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, start=0)
    run_due(climate)
    shown = reservation(lease)
    assert lease_servers.admit(climate, MEMBER, shown).id == lease.id
    for other in (shown.upper(), shown.replace("-", ""), f"{{{shown}}}"):
        with pytest.raises(InvalidInput, match="in the form in which it is shown"):
            lease_servers.admit(climate, MEMBER, other)


def test_the_history_names_no_machines(climate: Climate, clock: Clock) -> None:
    lease = make(climate, clock, start=0)
    run_due(climate)
    actors = [entry.actor["user_id"] for entry in leases.history(climate, MEMBER, lease.id)]
    assert actors == ["user", "climate:poller", "climate:worker"]


def test_a_lease_that_is_prolonged_is_imaged_again(climate: Climate, cloud: FakeCloud, clock: Clock) -> None:
    wanted = hosts_wanted(before_end="snapshot")
    end = clock.time + timedelta(hours=2)
    order = LeaseRequest("l", None, end, end - timedelta(hours=1), [wanted])
    lease = leases.create(climate, MEMBER, order)
    run_due(climate)
    server_id = cloud.boot("project", next(iter(cloud.pools()[reservation(lease)])))
    clock.forward(hours=1)
    run_due(climate)
    assert cloud.images == [(server_id, "reserved_server")]
    update.update(climate, MEMBER, lease.id, update.Changes(end=end + timedelta(hours=3)))
    clock.forward(hours=3)
    run_due(climate)
    assert cloud.images == [(server_id, "reserved_server")] * 2
