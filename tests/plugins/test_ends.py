"""The end of a lease over the bundled cloud, whatever its servers are at that moment."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from climate.cloud import FREEPOOL, NotYet
from climate.cloud.bundled import BundledCloud
from climate.compute.errors import NotFound, NoValidHost
from climate.compute.models.server import ACTIVE, PAUSE, SHELVED_OFFLOADED, SHUTOFF, STOP, SUSPEND, SUSPENDED
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.servers import actions, properties, rebuild, resize, unshelve
from climate.compute.servers.rebuild import Rebuilt
from climate.domain.lease import Reservation
from climate.domain.period import Period
from climate.plugin import ReservationContext
from plugins.physical_host import PhysicalHost
from plugins.virtual_instance import VirtualInstance
from tests.campaign import cases
from tests.compute.cloud_factory import HALF, Place, node, place
from tests.databases import unsafe

BY = {"project_id": "demo", "user_id": "dora", "request_id": "req-1"}
START = datetime(2030, 1, 1, tzinfo=UTC)

Act = Callable[[Place, str], object]


def resized(here: Place, server_id: str) -> None:
    resize.resize(here.compute, server_id, HALF)
    here.settle()


def broken(here: Place, server_id: str) -> None:
    properties.reset(here.compute, server_id, "ERROR", by=BY)


def unshelving_now(here: Place, server_id: str) -> None:
    actions.shelve(here.compute, server_id)
    here.settle()
    unshelve.unshelve(here.compute, server_id)


ACTS: dict[str, Act] = {
    "paused": lambda here, server_id: actions.request_task(here.compute, server_id, PAUSE),
    "suspended": lambda here, server_id: actions.request_task(here.compute, server_id, SUSPEND),
    "stopped": lambda here, server_id: actions.request_task(here.compute, server_id, STOP),
    "to be confirmed": resized,
    "locked": lambda here, server_id: properties.lock(here.compute, server_id, "mine", project_id="demo", by=BY),
    "in error": broken,
    "being shelved": lambda here, server_id: actions.shelve(here.compute, server_id),
    "being unshelved": unshelving_now,
    "being resized": lambda here, server_id: resize.resize(here.compute, server_id, HALF),
    "being rebuilt": lambda here, server_id: rebuild.rebuild(here.compute, server_id, Rebuilt(IMAGE_ID)),
    "being imaged": lambda here, server_id: actions.snapshot(here.compute, server_id, "copy"),
}


QUICK = frozenset({"suspended", "to be confirmed", "in error", "being resized", "being imaged"})
"""The states of `make test`: at rest, in error, and in the middle of long work."""


@pytest.fixture(scope="module")
def database(make_database: Callable[..., str], cloud_template: str) -> str:
    return unsafe(make_database(cloud_template))


@pytest.fixture
def here(database: str, tmp_path: Path) -> Iterator[Place]:
    with place(database, tmp_path, [node("h1")]) as found:
        yield found


def lent(
    pool: UUID,
    hosts: tuple[str, ...],
    kind: str = "physical:host",
    server_id: str | None = None,
    on_end: str = "delete",
) -> ReservationContext:
    reservation = Reservation(pool, kind, {"on_end": on_end}, server_id)
    return ReservationContext(uuid4(), "demo", Period(START, START + timedelta(hours=1)), reservation, hosts, 2)


def in_pool(here: Place, pool: UUID) -> str:
    """A server on a host that is lent, and nothing under way."""
    cloud = BundledCloud(here.compute)
    cloud.enrol("h1", 1)
    cloud.lend(str(pool), "demo", ["h1"], 1)
    return here.boot_one(hints={"reservation": str(pool)}).id


def ended(here: Place, end: Callable[[], None]) -> None:
    """Run an end until it is over, while the compute service works."""
    for _ in range(5):
        try:
            end()
        except NotYet:
            here.settle()
        else:
            return
    raise AssertionError("the lease does not end")


@pytest.mark.parametrize("state", cases(ACTS, QUICK))
def test_the_end_of_a_host_takes_its_servers_away(here: Place, state: str) -> None:
    pool = uuid4()
    server_id = in_pool(here, pool)
    ACTS[state](here, server_id)
    if not state.startswith("being"):
        here.settle()
    ended(here, lambda: PhysicalHost().on_end(BundledCloud(here.compute), lent(pool, ("h1",))))
    with pytest.raises(NotFound):
        here.look(server_id)
    assert BundledCloud(here.compute).pools() == {FREEPOOL: frozenset({"h1"})}
    assert here.drift() == []
    assert here.driver.guests == {}
    assert here.count("compute_addresses", "server_id IS NOT NULL") == 0


@pytest.mark.parametrize("state", cases(ACTS, QUICK))
def test_the_end_of_a_server_deletes_it(here: Place, state: str) -> None:
    server_id = here.boot_one().id
    ACTS[state](here, server_id)
    if not state.startswith("being"):
        here.settle()
    ending = lent(uuid4(), (), "virtual:instance", server_id)
    ended(here, lambda: VirtualInstance().on_end(BundledCloud(here.compute), ending))
    with pytest.raises(NotFound):
        here.look(server_id)
    assert (here.drift(), here.driver.guests) == ([], {})


def test_a_shelved_server_outlives_the_lease_of_its_host_and_comes_back_nowhere(here: Place) -> None:
    pool = uuid4()
    server_id = in_pool(here, pool)
    actions.shelve(here.compute, server_id)
    here.settle()
    ended(here, lambda: PhysicalHost().on_end(BundledCloud(here.compute), lent(pool, ("h1",))))
    shelved = here.look(server_id)
    assert (shelved.status, shelved.node) == (SHELVED_OFFLOADED, None)
    BundledCloud(here.compute).withdraw("h1", 999)  # there would be room for anybody
    with pytest.raises(NoValidHost):
        unshelve.unshelve(here.compute, server_id)
    assert here.look(server_id) == shelved
    with here.compute.engine.connect() as conn:
        image = conn.execute(text("SELECT status FROM compute_images")).scalar_one()
    assert image == "active"


@pytest.mark.parametrize(("before", "after"), [(ACTIVE, SUSPENDED), (SHUTOFF, SHUTOFF)])
def test_a_server_that_waits_for_its_resize_to_be_confirmed_does_not_run_on(
    here: Place, before: str, after: str
) -> None:
    server_id = here.boot_one().id
    if before == SHUTOFF:
        actions.request_task(here.compute, server_id, STOP)
        here.settle()
    resized(here, server_id)
    ending = lent(uuid4(), (), "virtual:instance", server_id, on_end="suspend")
    ended(here, lambda: VirtualInstance().on_end(BundledCloud(here.compute), ending))
    server = here.look(server_id)
    assert (server.status, server.task, server.flavor) == (after, None, HALF)
    assert here.drift() == []
