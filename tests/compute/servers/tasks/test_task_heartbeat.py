"""The claim on work: renewed while a driver works, free soon after a worker has died, and nothing done without it."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute.models.server import REBUILD
from climate.compute.nodes.services import IMAGE_ID
from climate.compute.servers import actions, rebuild
from climate.compute.servers.rebuild import Rebuilt
from climate.compute.servers.tasks import task_heartbeat, task_worker
from climate.compute.servers.tasks.task_heartbeat import CLAIM_SECONDS, TaskLost
from climate.compute.store.servers import tasks
from climate.compute.virt import Guest
from tests.compute.cloud_factory import Place


def claim_of_another(here: Place) -> str:
    """The work of every server is another worker's now; its id."""
    other = str(uuid4())
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_servers SET worker = CAST(:worker AS uuid)"), {"worker": other})
    return other


def test_a_claim_lasts_seconds_and_is_renewed_while_it_is_held(here: Place) -> None:
    server_id = here.boot()[0].id
    worker, now = str(uuid4()), datetime.now(UTC)
    with here.compute.engine.begin() as conn:
        assert tasks.claim(conn, server_id, here.compute.service_host, worker, now - timedelta(seconds=60), 1)
    assert task_heartbeat.renew(here.compute, server_id, worker)
    with here.compute.engine.connect() as conn:
        until = conn.execute(text("SELECT worker_until FROM compute_servers")).scalar_one()
    assert timedelta(0) < until - now < timedelta(seconds=CLAIM_SECONDS + 5)
    claim_of_another(here)
    assert not task_heartbeat.renew(here.compute, server_id, worker)
    with task_heartbeat.renewed_claim(here.compute, server_id, worker) as check, pytest.raises(TaskLost):
        check()


def test_a_worker_that_lost_the_work_deletes_and_records_nothing(here: Place) -> None:
    server = here.boot_one()
    rebuild.rebuild(here.compute, server.id, Rebuilt(IMAGE_ID))
    run = here.driver.run

    def overtaken(guest: Guest) -> None:
        run(guest)
        claim_of_another(here)

    here.driver.run = overtaken
    here.settle()
    assert here.look(server.id).task == REBUILD
    here.driver.calls.clear()
    asking_again = here.look(server.id)
    task_worker.run_task(here.compute, server.id)
    assert (here.driver.calls, here.look(server.id)) == ([], asking_again)


def test_what_a_successor_created_is_not_deleted(here: Place) -> None:
    server = here.boot_one()
    actions.shelve(here.compute, server.id)
    snapshot = here.driver.snapshot

    def slow(guest: Guest, target: object) -> None:
        snapshot(guest, target)
        claim_of_another(here)

    here.driver.snapshot = slow
    here.settle()
    assert here.driver.guests.keys() == {server.id}
    assert here.count("compute_images", "status = 'saving'") == 1
    assert list(here.compute.images.iterdir()) == []
