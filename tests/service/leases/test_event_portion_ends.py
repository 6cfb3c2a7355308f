"""Several ends that one worker carries out together, over the bundled cloud."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import text

from climate.cloud import Return
from climate.cloud.bundled import BundledCloud
from climate.compute.servers import create
from climate.service.events import event_batches, event_dispatch
from climate.service.journal import consistency_check
from climate.service.leases import leases
from tests.compute.cloud_factory import request
from tests.conftest import MEMBER
from tests.scenarios.test_statement_counts import counted
from tests.service.leases.batches import Here, eight_hosts, host_of, run_alone, watched


@pytest.fixture
def here(cloud_database: str, tmp_path: Path) -> Iterator[Here]:
    with eight_hosts(cloud_database, tmp_path) as found:
        yield found


def test_statements_and_commits_do_not_depend_on_how_many_are_ended(here: Here) -> None:
    found = []
    for count in (2, 5):
        made = here.ending(count)
        messages = here.rung()
        assert len({message.number for message in messages}) == 1
        with counted(here.climate.engine) as seen:
            event_batches.run(here.climate, messages, "worker")
        assert here.status(made) == ["TERMINATED"] * count
        assert [here.pool_of(lease) for lease in made] == [("reservation", "freepool")] * count
        found.append(len([statement for statement in seen if "clock_timestamp() AS" not in statement]))
    assert found[0] == found[1], seen
    assert found[0] <= 20
    assert consistency_check.differences(here.climate) == []


def test_an_end_with_servers_runs_alone_and_deletes_them_first(here: Here) -> None:
    made = here.ending(3)
    pool = str(made[1].reservations[0].id)
    cloud = here.climate.cloud
    assert isinstance(cloud, BundledCloud)
    (server,) = create.boot(cloud.compute, request(project_id=MEMBER.project_id, hints={"reservation": pool}))
    event_batches.run(here.climate, here.rung(), "worker")
    assert here.status(made) == ["TERMINATED", "TERMINATING", "TERMINATED"]
    assert here.claims() == [(False, False, 1)]
    run_alone(here)
    assert here.status(made)[1] == "TERMINATING", "its server is being deleted"
    assert [one.id for one in cloud.servers_in(pool)] == [server.id]
    with here.climate.engine.connect() as conn:
        assert conn.scalar(text("SELECT task FROM compute_servers")) == "deleting"


def test_an_end_whose_pool_or_host_is_held_delays_no_other(here: Here) -> None:
    made = here.ending(4)
    held = [
        ("SELECT name FROM compute_aggregates WHERE name = :name FOR NO KEY UPDATE", str(made[0].reservations[0].id)),
        ("SELECT name FROM compute_nodes WHERE name = :name FOR NO KEY UPDATE", host_of(here, made[3])),
    ]
    with here.climate.engine.begin() as conn:
        assert [conn.scalar(text(statement), {"name": name}) for statement, name in held] == [one[1] for one in held]
        event_batches.run(here.climate, here.rung(), "worker")
        assert here.status(made) == ["TERMINATING", "TERMINATED", "TERMINATED", "TERMINATING"]
        assert here.claims() == [(False, False, 1)] * 2
    assert len(run_alone(here)) == 2
    assert here.status(made) == ["TERMINATED"] * 4
    assert consistency_check.differences(here.climate) == []


def test_ends_that_release_hosts_run_alone(here: Here) -> None:
    here.climate = replace(here.climate, settings=replace(here.climate.settings, host_on_end_choices="release,recycle"))
    here.write("INSERT INTO compute_aggregates (name) VALUES ('recycling')")
    *released, recycled = here.ending(3, ["release", "release", "recycle"])
    messages = here.rung()
    event_batches.run(here.climate, messages, "worker")
    assert here.status(released) == ["TERMINATING"] * 2
    assert here.pool_of(recycled) == ("recycling", "recycling")
    run_alone(here)
    assert [here.pool_of(lease) for lease in released] == [("multi-tenant", None)] * 2
    assert consistency_check.differences(here.climate) == []


def test_a_lease_that_was_deleted_is_gone_with_its_end(here: Here) -> None:
    made = here.ending(2)
    here.ahead -= timedelta(hours=1)
    for lease in made:
        leases.delete(here.climate, MEMBER, lease.id)
    event_batches.run(here.climate, here.rung(), "worker")
    assert [here.facts(lease)[-1] for lease in made] == ["LeaseDeleted"] * 2
    assert consistency_check.differences(here.climate) == []


def test_an_end_of_a_later_claim_is_not_overtaken_by_an_earlier_one(here: Here) -> None:
    """The cloud refuses the token of a worker whose claim is over."""
    made = here.ending(2)
    messages = here.rung()
    number = made[0].reservations[0].hosts[0]
    here.write(
        "UPDATE compute_nodes SET fence = fence + 1000000 WHERE name = "
        "(SELECT hypervisor_hostname FROM hosts WHERE id = :id)",
        id=number,
    )
    event_batches.run(here.climate, messages, "worker")
    assert here.status(made) == ["TERMINATING", "TERMINATED"]
    assert here.pool_of(made[0])[0] == "lent"


def test_ends_that_a_killed_worker_left_are_repeated_without_harm(here: Here) -> None:
    cloud = here.climate.cloud
    assert isinstance(cloud, BundledCloud)

    def taken(returns: Sequence[Return]) -> None:
        BundledCloud(cloud.compute).take_back_together(returns)
        raise KeyboardInterrupt

    made = here.ending(3)
    with pytest.raises(KeyboardInterrupt):
        event_batches.run(watched(here, taken), here.rung(), "worker")
    assert [here.pool_of(lease)[1] for lease in made] == ["freepool"] * 3
    here.ahead += timedelta(seconds=40)
    assert event_dispatch.rescue(here.climate, "poller") == 3
    here.ahead += timedelta(seconds=40)
    assert len(run_alone(here)) == 3
    assert here.status(made) == ["TERMINATED"] * 3
    assert [here.facts(lease).count("EventFinished") for lease in made] == [2, 2, 2]
    assert consistency_check.differences(here.climate) == []
