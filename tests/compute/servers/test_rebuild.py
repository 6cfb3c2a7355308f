"""Servers that start from another image: the checks before, and what their drivers get."""

from dataclasses import replace

import pytest

from climate.compute.errors import BadRequest, Busy, Conflict, NotFound, VirtError
from climate.compute.images import image_data
from climate.compute.models.server import ACTIVE, ERROR, RESCUED, START, STOP, UNRESCUE
from climate.compute.servers import actions, rebuild, sync_states
from climate.compute.servers.rebuild import Rebuilt
from climate.compute.virt import Guest
from climate.compute.virt.in_memory import MemoryDriver
from tests.compute.cloud_factory import Place

NOBODY = "00000000-0000-4000-8000-000000000000"


class Recorder(MemoryDriver):
    """Driver that keeps what it runs, and may fail."""

    def __init__(self, driver: MemoryDriver) -> None:
        super().__init__(driver.specs)
        self.guests, self.ran, self.fails = driver.guests, list[Guest](), False

    def run(self, guest: Guest) -> None:
        self.ran.append(guest)
        if self.fails:
            raise VirtError("the switch is stuck")
        super().run(guest)


def recording(here: Place) -> Recorder:
    """Replace the driver of a cloud by one that records."""
    here.driver = Recorder(here.driver)
    here.compute = replace(here.compute, driver=here.driver)
    return here.driver


def rescued(here: Place, server_id: str, image_id: str | None = None) -> None:
    rebuild.rescue(here.compute, server_id, image_id)
    here.settle()


def test_a_rescued_server_runs_from_the_image_and_then_from_its_own(here: Place) -> None:
    driver, own, other = recording(here), here.image(b"own"), here.image(b"other")
    server = here.boot_one(image_id=own)
    for image_id, used in ((other, other), (None, own)):
        rescued(here, server.id, image_id)
        assert here.look(server.id).status == RESCUED
        assert (driver.ran[-1].rescued, driver.ran[-1].image) == (True, image_data.content_file(here.compute, used))
        actions.request_task(here.compute, server.id, UNRESCUE)
        here.settle()
        assert here.look(server.id).status == ACTIVE
        assert (driver.ran[-1].rescued, driver.ran[-1].image) == (False, image_data.content_file(here.compute, own))


def test_a_rescue_that_fails_leaves_a_server_that_starts_again(here: Place) -> None:
    driver, server = recording(here), here.boot_one(image_id=here.image())
    driver.fails = True
    rescued(here, server.id)
    failed = here.look(server.id)
    assert (failed.status, (failed.fault or {})["message"]) == (ERROR, "the switch is stuck")
    driver.fails = False
    actions.request_task(here.compute, server.id, STOP)
    here.settle()
    actions.request_task(here.compute, server.id, START)
    here.settle()
    assert (here.look(server.id).status, driver.ran[-1].rescued) == (ACTIVE, False)


def test_a_rescue_is_checked_first(here: Place) -> None:
    server = here.boot_one()
    with pytest.raises(BadRequest, match="has no image to be rescued with: give rescue_image_ref"):
        rebuild.rescue(here.compute, server.id, None)
    with pytest.raises(NotFound):
        rebuild.rescue(here.compute, NOBODY, None)
    with pytest.raises(NotFound):
        rebuild.rescue(here.compute, server.id, None, project_id="other")
    image_id = here.image()
    rebuild.rescue(here.compute, server.id, image_id)
    with pytest.raises(Busy, match="task_state rescuing"):
        rebuild.rescue(here.compute, server.id, image_id)
    here.settle()
    with pytest.raises(Conflict, match="vm_state rescued"):
        rebuild.rebuild(here.compute, server.id, Rebuilt(image_id))


def test_a_rescued_server_whose_guest_ended_can_still_be_unrescued(here: Place) -> None:
    server = here.boot_one(image_id=here.image())
    rescued(here, server.id)
    here.driver.guests.clear()
    sync_states.reconcile(here.compute)
    assert here.look(server.id).status == RESCUED
    actions.request_task(here.compute, server.id, UNRESCUE)
    here.settle()
    assert here.look(server.id).status == ACTIVE
