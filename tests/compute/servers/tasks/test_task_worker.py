"""What is asked of servers is done once, by one worker, whatever becomes of the rings."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from uuid import uuid4

import pytest
from sqlalchemy import text

from climate.compute.errors import Busy, Conflict, NotFound, StaleToken, VirtError
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    ERROR,
    EVACUATE,
    LIVE_MIGRATE,
    MIGRATE,
    PAUSE,
    PAUSED,
    REBOOT,
    REBOOT_HARD,
    REBUILD,
    RESCUE,
    RESCUED,
    RESERVE,
    RESERVED,
    RESIZE,
    RESUME,
    REVERT,
    REWIRE,
    SHELVE,
    SHELVED_OFFLOADED,
    SHUTOFF,
    SNAPSHOT,
    SPAWN,
    START,
    STATUSES,
    STOP,
    SUSPEND,
    SUSPENDED,
    UNPAUSE,
    UNRESCUE,
    UNSHELVE,
    VERIFY_RESIZE,
    WAKE,
    WISHES,
    after,
    may,
)
from climate.compute.servers import actions, create
from climate.compute.servers.tasks import task_worker
from tests.compute.cloud_factory import Place, request

SETTLED = (ACTIVE, SHUTOFF, PAUSED, SUSPENDED)

LEADS = {
    (STOP, ACTIVE): SHUTOFF,
    (STOP, ERROR): SHUTOFF,
    (START, SHUTOFF): ACTIVE,
    (PAUSE, ACTIVE): PAUSED,
    (UNPAUSE, PAUSED): ACTIVE,
    (SUSPEND, ACTIVE): SUSPENDED,
    (RESUME, SUSPENDED): ACTIVE,
    (REBOOT, ACTIVE): ACTIVE,
    (WAKE, RESERVED): ACTIVE,
    (REBUILD, ACTIVE): ACTIVE,
    (REBUILD, SHUTOFF): SHUTOFF,
    (REBUILD, ERROR): ACTIVE,
    (MIGRATE, ACTIVE): VERIFY_RESIZE,
    (MIGRATE, SHUTOFF): VERIFY_RESIZE,
    (LIVE_MIGRATE, ACTIVE): ACTIVE,
    (LIVE_MIGRATE, PAUSED): PAUSED,
    (EVACUATE, ACTIVE): ACTIVE,
    (EVACUATE, SHUTOFF): SHUTOFF,
    (EVACUATE, ERROR): ACTIVE,
    (RESIZE, ACTIVE): VERIFY_RESIZE,
    (RESIZE, SHUTOFF): VERIFY_RESIZE,
    (REVERT, VERIFY_RESIZE): ACTIVE,
    (UNSHELVE, SHELVED_OFFLOADED): ACTIVE,
    **{(RESCUE, status): RESCUED for status in (ACTIVE, SHUTOFF, ERROR)},
    (UNRESCUE, RESCUED): ACTIVE,
    (REBOOT_HARD, ERROR): ACTIVE,
    **{(REBOOT_HARD, status): ACTIVE for status in SETTLED},
    **{(SNAPSHOT, status): status for status in SETTLED},
    **{(REWIRE, status): status for status in (*SETTLED, RESERVED, VERIFY_RESIZE)},
    **{(SHELVE, status): SHELVED_OFFLOADED for status in SETTLED},
}
"""(task, status) -> the status afterwards.  Whatever is not here is refused."""

SIDE = {
    WAKE: {RESERVE, REWIRE},
    REBOOT_HARD: {REBOOT},
    DELETE: set(WISHES),
}
"""Task -> the tasks under way that it replaces, besides itself."""


@pytest.mark.parametrize("task", sorted(WISHES.keys() - {SPAWN, RESERVE}))
def test_every_wish_from_every_status_whatever_is_under_way(here: Place, task: str) -> None:
    server = here.boot_one()
    for status in STATUSES:
        for under_way in (None, *WISHES):
            now = replace(server, status=status, task=under_way)
            begins = task == DELETE or (
                (task, status) in LEADS and under_way in {None, task} | SIDE.get(task, set()) - {DELETE}
            )
            if begins:
                may(now, task)
                assert after(replace(now, task=task, before=ACTIVE)) == LEADS.get((task, status), status)
            else:
                with pytest.raises(Conflict) as refusal:
                    may(now, task)
                assert isinstance(refusal.value, Busy) == ((task, status) in LEADS and under_way != DELETE)


def put(here: Place, server_id: str, status: str) -> None:
    with here.compute.engine.begin() as conn:
        conn.execute(
            text("UPDATE compute_servers SET status = :status WHERE id = CAST(:id AS uuid)"),
            {"status": status, "id": server_id},
        )


@pytest.mark.parametrize("status", STATUSES)
def test_a_server_can_be_deleted_in_every_status(here: Place, status: str) -> None:
    server_id = here.boot_one().id
    put(here, server_id, status)
    actions.request_task(here.compute, server_id, DELETE)
    here.settle()
    assert here.count("compute_servers") == 0


def test_one_thing_at_a_time_but_deleting_overtakes(here: Place) -> None:
    server_id = here.boot_one().id
    actions.request_task(here.compute, server_id, STOP)
    with pytest.raises(Busy):
        actions.request_task(here.compute, server_id, SUSPEND)
    actions.request_task(here.compute, server_id, STOP)
    actions.request_task(here.compute, server_id, DELETE)
    with pytest.raises(Conflict, match="being deleted"):
        actions.request_task(here.compute, server_id, STOP)
    here.settle()
    assert [verb for verb, _ in here.driver.calls] == ["run", "delete"]


def test_waking_overtakes_the_preparation(here: Place) -> None:
    server = create.reserve(here.compute, request(), str(uuid4()))
    actions.request_task(here.compute, server.id, WAKE, token=3)
    here.settle()
    assert here.look(server.id).status == ACTIVE
    assert [verb for verb, _ in here.driver.calls] == ["run"]
    actions.request_task(here.compute, server.id, WAKE, token=3)
    assert here.rings.rung == []
    with pytest.raises(StaleToken):
        actions.request_task(here.compute, server.id, WAKE, token=2)


def test_a_wish_that_comes_while_the_driver_works_is_not_lost(here: Place) -> None:
    server = here.boot()[0]
    verbs = here.driver.run

    def run(guest: object) -> None:
        verbs(guest)
        actions.request_task(here.compute, server.id, DELETE)

    here.driver.run = run
    here.rings.rung.clear()
    task_worker.run_task(here.compute, server.id)
    assert here.count("compute_servers") == 0
    assert here.driver.guests == {}


def test_doubled_rings_do_the_work_once(here: Place) -> None:
    server_id = here.boot()[0].id
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: task_worker.run_task(here.compute, server_id), range(16)))
    assert here.driver.calls == [("run", server_id)]
    task_worker.run_task(here.compute, str(uuid4()))


def test_lost_rings_are_rung_again_but_not_all_the_time(here: Place) -> None:
    server_id = here.boot()[0].id
    assert task_worker.unfinished(here.compute, wait=60) == []
    assert task_worker.unfinished(here.compute, wait=0) == [("compute-1", server_id)]
    assert task_worker.unfinished(here.compute, wait=0) == []
    assert task_worker.unfinished(here.compute, wait=0, again=0) == [("compute-1", server_id)]
    task_worker.run_task(here.compute, server_id)
    assert task_worker.unfinished(here.compute, wait=0, again=0) == []


def test_a_dead_workers_work_is_done_by_another(here: Place) -> None:
    server_id = here.boot()[0].id

    def dies(guest: object) -> None:
        raise KeyboardInterrupt

    works, here.driver.run = here.driver.run, dies
    with pytest.raises(KeyboardInterrupt):
        task_worker.run_task(here.compute, server_id)
    here.driver.run = works
    task_worker.run_task(here.compute, server_id)
    assert here.look(server_id).task == SPAWN
    with here.compute.engine.begin() as conn:
        conn.execute(text("UPDATE compute_servers SET worker_until = clock_timestamp() - interval '1 second'"))
    assert task_worker.unfinished(here.compute, wait=0) == [("compute-1", server_id)]
    task_worker.run_task(here.compute, server_id)
    assert here.look(server_id).status == ACTIVE


def test_no_transaction_is_open_while_the_driver_works(here: Place) -> None:
    server_id = here.boot()[0].id
    open_then: list[int] = []
    works = here.driver.run

    def run(guest: object) -> None:
        open_then.append(here.compute.engine.pool.checkedout())  # type: ignore[attr-defined]
        works(guest)

    here.driver.run = run
    task_worker.run_task(here.compute, server_id)
    assert open_then == [0]


def test_what_the_driver_cannot_do_is_reported(here: Place) -> None:
    server_id = here.boot_one().id

    def fails(guest: object) -> None:
        raise VirtError("the switch is stuck")

    here.driver.stop = fails
    actions.request_task(here.compute, server_id, STOP)
    here.settle()
    server = here.look(server_id)
    assert (server.status, server.task, (server.fault or {})["message"]) == (ERROR, None, "the switch is stuck")


def broken_images(here: Place) -> None:
    """The folder of images is none: whoever makes a file there gets an error of the disk, also as root."""
    shutil.rmtree(here.compute.images, ignore_errors=True)
    here.compute.images.write_text("", encoding="ascii")


def test_a_snapshot_ends_when_the_folder_of_images_fails(here: Place) -> None:
    server = here.boot_one()
    broken_images(here)
    actions.snapshot(here.compute, server.id, "copy")
    here.settle()
    assert (here.look(server.id).status, here.look(server.id).task) == (ACTIVE, None)
    assert here.count("compute_images", "status = 'killed'") == 1


def test_shelving_ends_when_the_folder_of_images_fails(here: Place) -> None:
    server = here.boot_one()
    broken_images(here)
    actions.shelve(here.compute, server.id)
    here.settle()
    after = here.look(server.id)
    assert (after.status, after.task) == (SHUTOFF, None)
    assert after.fault is not None
    assert after.fault["message"] == "the disk of the compute service failed: File exists"


def test_a_server_with_an_image_is_deleted_while_the_folder_of_images_fails(here: Place) -> None:
    server = here.boot_one(image_id=here.image())
    broken_images(here)
    actions.request_task(here.compute, server.id, DELETE)
    here.settle()
    assert here.count("compute_servers") == 0


def test_a_deletion_that_fails_is_tried_again(here: Place) -> None:
    server_id = here.boot_one().id
    works = here.driver.delete

    def fails(guest: object) -> None:
        raise VirtError("stuck")

    here.driver.delete = fails
    actions.request_task(here.compute, server_id, DELETE)
    here.settle()
    assert here.look(server_id).task == DELETE
    here.driver.delete = works
    assert task_worker.unfinished(here.compute, wait=0, again=0) == [("compute-1", server_id)]
    task_worker.run_task(here.compute, server_id)
    assert here.count("compute_servers") == 0


def test_a_snapshot_under_a_token_is_created_once(here: Place) -> None:
    server_id = here.boot_one().id
    first = actions.snapshot(here.compute, server_id, "reserved_s", once=actions.IdempotentAction(1, "end"))
    assert actions.snapshot(here.compute, server_id, "reserved_s", once=actions.IdempotentAction(1, "end")) == first
    here.settle()
    assert actions.snapshot(here.compute, server_id, "reserved_s", once=actions.IdempotentAction(2, "end")) == first
    assert (
        actions.snapshot(here.compute, server_id, "reserved_s", once=actions.IdempotentAction(2, "later end")) != first
    )
    here.settle()
    assert here.count("compute_images", f"id = '{first}' AND status = 'active' AND size > 0") == 1
    with pytest.raises(StaleToken):
        actions.snapshot(here.compute, server_id, "reserved_s", once=actions.IdempotentAction(1, "end"))


def test_deleting_gives_a_snapshot_up(here: Place) -> None:
    server_id = here.boot_one().id
    image = actions.snapshot(here.compute, server_id, "late")
    actions.request_task(here.compute, server_id, DELETE)
    here.settle()
    assert here.count("compute_images", f"id = '{image}' AND status = 'killed'") == 1


def test_another_projects_server_is_not_there(here: Place) -> None:
    server_id = here.boot_one().id
    with pytest.raises(NotFound):
        actions.request_task(here.compute, server_id, STOP, project_id="other")
    with pytest.raises(NotFound):
        actions.get(here.compute, server_id, "other")
