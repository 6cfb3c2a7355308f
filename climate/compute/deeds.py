"""What each task does with the driver.

Every step is "make it so", and the steps of a task are in an order in which a
worker that dies between two of them loses nothing: its successor begins anew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from climate.compute import attachments, config_drives, images, plugging
from climate.compute.context import Compute
from climate.compute.errors import VirtError
from climate.compute.heartbeat import Check
from climate.compute.image import ACTIVE as IMAGE_ACTIVE
from climate.compute.image import Content
from climate.compute.server import (
    ACTIVE,
    DELETE,
    PAUSE,
    REBOOT,
    REBOOT_HARD,
    REBUILD,
    RESERVE,
    RESERVED,
    RESIZE,
    RESUME,
    REVERT,
    REWIRE,
    SHELVE,
    SHUTOFF,
    SNAPSHOT,
    SPAWN,
    START,
    STOP,
    SUSPEND,
    UNPAUSE,
    UNSHELVE,
    VERIFY_RESIZE,
    WAKE,
    Server,
)
from climate.compute.store import images as image_rows
from climate.compute.virt import Guest, VirtDriver


@dataclass(frozen=True, slots=True)
class Work:
    """A task under way, and what it is done with."""

    compute: Compute
    server: Server
    guest: Guest
    check: Check

    @property
    def driver(self) -> VirtDriver:
        return self.compute.driver

    def connected(self, *, up: bool = True) -> Guest:
        """The guest with its volumes, and its interfaces plugged in; `up` False: it hears and says nothing."""
        volumes = attachments.of_guest(self.compute, self.server)
        return replace(self.guest, interfaces=plugging.plug(self.compute, self.server, up=up), volumes=volumes)

    def told(self, *, up: bool = True) -> Guest:
        """The same with its config drive, for a guest that is to start."""
        return replace(self.connected(up=up), config=config_drives.of_server(self.compute, self.server))

    def clear(self) -> None:
        """Leave nothing of the guest, then nothing of its interfaces: a guest never loses them while it runs."""
        self.check()
        self.driver.delete(self.server.id)
        plugging.unplug(self.compute, self.server)


Deed = Callable[[Work], Content | None]


def do(work: Work) -> Content | None:
    """Do what is wanted of a server; the content of its snapshot if it is one.  Raises VirtError, Lost."""
    content = DEEDS[work.server.task or ""](work)
    if work.server.task in CONNECTING:
        attachments.settle(work.compute, work.server, done=True)
    return content


def _verb(act: Callable[[VirtDriver, Guest], None]) -> Deed:
    def done(work: Work) -> None:
        act(work.driver, work.guest)

    return done


def _run(work: Work) -> None:
    work.driver.run(work.told())


def _reserve(work: Work) -> None:
    work.driver.prepare(work.told(up=False))


def _stop(work: Work) -> None:
    work.driver.stop(work.guest)
    work.connected(up=False)


def _resume(work: Work) -> None:
    work.driver.resume(work.connected())


def _rewire(work: Work) -> None:
    server = work.server
    status = server.before if server.status == VERIFY_RESIZE else server.status
    guest = work.connected(up=status not in (RESERVED, SHUTOFF))
    plugging.sweep(work.compute)  # an interface that the server had is nobody's now
    try:
        work.driver.rewire(guest)
    except VirtError:
        attachments.settle(work.compute, work.server, done=False)
        raise


def _reboot(work: Work) -> None:
    work.driver.stop(work.guest, kindly=work.server.task == REBOOT)
    work.check()
    _run(work)


def _snapshot(work: Work) -> Content:
    return images.content_of(work.compute, work.guest, work.server.task_image or "", work.check)


def _shelve(work: Work) -> None:
    compute, image = work.compute, work.server.task_image or ""
    if not images.is_made(compute, image):
        work.driver.stop(work.guest, kindly=work.server.status == ACTIVE)
        content = _snapshot(work)
        # Written down before the guest goes: from here on the image is all there is of it.
        with compute.engine.begin() as conn:
            image_rows.settle(conn, image, IMAGE_ACTIVE, compute.now(conn), content)
    work.clear()


def _rebuild(work: Work) -> None:
    work.check()
    work.driver.delete(work.server.id)
    _run(work)
    if work.server.status == SHUTOFF:
        work.driver.stop(work.guest, kindly=False)
        work.connected(up=False)


def _resize(work: Work) -> None:
    """A server that is shut off gets its size when it is started."""
    if (work.server.status if work.server.task == RESIZE else work.server.before) == ACTIVE:
        work.driver.stop(work.guest)
        work.check()
        _run(work)


DEEDS: Mapping[str, Deed] = {
    SPAWN: _run,
    RESERVE: _reserve,
    WAKE: _run,
    STOP: _stop,
    START: _run,
    PAUSE: _verb(lambda driver, guest: driver.pause(guest)),
    UNPAUSE: _verb(lambda driver, guest: driver.unpause(guest)),
    SUSPEND: _verb(lambda driver, guest: driver.suspend(guest)),
    RESUME: _resume,
    REBOOT: _reboot,
    REBOOT_HARD: _reboot,
    SNAPSHOT: _snapshot,
    SHELVE: _shelve,
    UNSHELVE: _run,
    REBUILD: _rebuild,
    RESIZE: _resize,
    REVERT: _resize,
    REWIRE: _rewire,
    DELETE: Work.clear,
}
"""Task -> what is done."""

CONNECTING = frozenset({SPAWN, WAKE, START, RESUME, REBOOT, REBOOT_HARD, UNSHELVE, REBUILD, REWIRE})
"""Tasks after which a guest has the volumes that it is to have."""
