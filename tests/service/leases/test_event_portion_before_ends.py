"""Several before_end events that one worker carries out together."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event, text

from climate.cloud import Cloud
from climate.cloud.bundled import BundledCloud
from climate.compute.servers import create
from climate.domain.events.event import Event
from climate.domain.lease import Lease
from climate.domain.status import EventKind
from climate.plugin import Plugins, ReservationContext
from climate.service.events import event_batches, event_dispatch
from climate.service.journal import consistency_check
from climate.service.leases import leases
from climate.store.leases.claim_batches import Batched
from plugins.physical_host import PhysicalHost
from tests.compute.cloud_factory import request
from tests.conftest import ADMIN, MEMBER
from tests.scenarios.test_statement_counts import counted
from tests.service.leases.batches import Here, eight_hosts, run_alone


@pytest.fixture
def here(cloud_database: str, tmp_path: Path) -> Iterator[Here]:
    with eight_hosts(cloud_database, tmp_path) as found:
        yield found


def before_end(here: Here, lease: Lease) -> Event:
    return leases.get(here.climate, ADMIN, lease.id).event(EventKind.BEFORE_END)


def notices(here: Here, kind: str) -> list[str]:
    """The leases of which there are notices of a kind."""
    with here.climate.engine.connect() as conn:
        found = conn.scalars(text("SELECT lease_id::text FROM notices WHERE kind = :kind"), {"kind": kind})
        return sorted(found)


def ids(made: list[Lease]) -> list[str]:
    return sorted(str(lease.id) for lease in made)


def test_statements_and_commits_do_not_depend_on_how_many_there_are(here: Here) -> None:
    engine, found = here.climate.engine, []
    commits: list[object] = []
    note = commits.append
    for count in (2, 5):
        made = here.near_their_ends(count)
        messages = here.rung()
        assert len(messages) == count
        assert len({message.number for message in messages}) == 1
        event.listen(engine, "commit", note)
        with counted(engine) as seen:
            event_batches.run(here.climate, messages, "worker")
        event.remove(engine, "commit", note)
        assert [before_end(here, lease).outcome for lease in made] == ["LATE"] * count
        found.append((len([one for one in seen if "clock_timestamp() AS" not in one]), len(commits)))
        commits.clear()
        here.ahead += timedelta(days=1)
        event_batches.run(here.climate, here.rung(), "worker")
        assert here.status(made) == ["TERMINATED"] * count
    assert found[0] == found[1], seen
    assert found[0] <= (12, 2)
    assert consistency_check.differences(here.climate) == []


def test_each_owner_and_each_service_is_notified_once(here: Here) -> None:
    settings = replace(here.climate.settings, notify_url="http://127.0.0.1:1/")
    here.climate = replace(here.climate, settings=settings)
    made = here.near_their_ends(4)
    messages = here.rung()
    for _ in range(2):  # the second message is a duplicate
        event_batches.run(here.climate, messages, "worker")
    assert notices(here, "lease.before_end") == ids(made)
    assert notices(here, "lease.event.before_end_lease") == ids(made)
    assert [here.facts(lease)[-1] for lease in made] == ["EventFinished"] * 4


def test_a_lease_whose_servers_are_saved_first_runs_alone(here: Here) -> None:
    (saved,) = here.near_their_ends(1, before_end="snapshot")
    here.ahead -= timedelta(hours=23, minutes=30)
    others = here.near_their_ends(2)
    cloud = here.climate.cloud
    assert isinstance(cloud, BundledCloud)
    pool = str(saved.reservations[0].id)
    create.boot(cloud.compute, request(project_id=MEMBER.project_id, hints={"reservation": pool}))
    here.write("UPDATE compute_servers SET status = 'ACTIVE', task = NULL")
    event_batches.run(here.climate, here.rung(), "worker")
    assert [before_end(here, lease).status for lease in (saved, *others)] == ["IN_PROGRESS", "DONE", "DONE"]
    assert here.claims() == [(False, False, 1)], "it gets a message of its own"
    assert notices(here, "lease.before_end") == ids(others)
    run_alone(here)
    assert "images are still being created" in str(before_end(here, saved).reason)


def test_a_plugin_that_overrides_the_hook_is_asked_for_each_lease(here: Here) -> None:
    asked: list[str] = []

    class Own(PhysicalHost):
        def before_end(self, cloud: Cloud, lent: ReservationContext) -> None:
            asked.append(str(lent.lease_id))

    here.climate = replace(here.climate, plugins=Plugins({PhysicalHost.resource_type: Own()}))
    assert Batched("events.physical:host", EventKind.BEFORE_END) not in event_batches.batched(here.climate)
    made = here.near_their_ends(3)
    event_batches.run(here.climate, here.rung(), "worker")
    assert here.claims() == [(False, False, 1)] * 3, "a message of another release is taken apart"
    run_alone(here)
    assert sorted(asked) == ids(made)
    assert notices(here, "lease.before_end") == ids(made)


def test_events_that_come_after_the_end_are_passed_over_and_nobody_is_notified(here: Here) -> None:
    made = here.near_their_ends(2)
    messages = here.rung()
    here.ahead += timedelta(hours=1)
    event_batches.run(here.climate, messages, "worker")
    assert [before_end(here, lease).outcome for lease in made] == ["SKIPPED"] * 2
    assert notices(here, "lease.before_end") == []


def test_events_of_a_killed_worker_are_repeated_and_notified_once(here: Here) -> None:
    class Killed(PhysicalHost):
        def before_end_together(self, cloud: object, lent: object) -> list[None]:
            raise KeyboardInterrupt

    made = here.near_their_ends(3)
    dying = replace(here.climate, plugins=Plugins({PhysicalHost.resource_type: Killed()}))
    with pytest.raises(KeyboardInterrupt):
        event_batches.run(dying, here.rung(), "worker")
    here.ahead += timedelta(seconds=40)
    assert event_dispatch.rescue(here.climate, "poller") == 3
    here.ahead += timedelta(seconds=40)
    assert len(run_alone(here)) == 3
    assert notices(here, "lease.before_end") == ids(made)
    assert consistency_check.differences(here.climate) == []
