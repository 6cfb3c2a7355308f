"""The driver calls of each task.

Every step is idempotent. The order of steps is safe against a crash between two of them: the next worker starts
again.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from climate.compute.errors import VirtError
from climate.compute.images import backups, image_data
from climate.compute.migrations import live_migration, migration_steps
from climate.compute.models.server import (
    ACTIVE,
    DELETE,
    EVACUATE,
    LIVE_MIGRATE,
    MIGRATE,
    PAUSE,
    PAUSED,
    REBOOT,
    REBOOT_HARD,
    REBUILD,
    RESCUE,
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
    SUSPENDED,
    UNPAUSE,
    UNRESCUE,
    UNSHELVE,
    VERIFY_RESIZE,
    WAKE,
)
from climate.compute.servers import volume_attachments
from climate.compute.servers.interfaces import vif_plugging
from climate.compute.servers.tasks.task_context import Work
from climate.compute.virt import Guest, VirtDriver

TaskFunction = Callable[[Work], None]


def do(work: Work) -> None:
    """Carry out the task of a server. Raises VirtError, Lost."""
    TASK_FUNCTIONS[work.server.task or ""](work)
    if work.server.task in CONNECTING:
        volume_attachments.settle(work.compute, work.server, done=True)


def _run(work: Work) -> None:
    work.driver.run(work.with_config_drive())


def _reserve(work: Work) -> None:
    work.driver.prepare(work.with_config_drive(up=False))


def _stop(work: Work) -> None:
    work.driver.stop(work.guest)
    work.connected(up=False)


def _quiet(act: Callable[[VirtDriver, Guest], None]) -> TaskFunction:
    """Return the task that pauses a guest: a kernel answers for processes that stand still, so its link goes down."""

    def done(work: Work) -> None:
        act(work.driver, work.guest)
        work.connected(up=False)

    return done


def _unpause(work: Work) -> None:
    work.driver.unpause(work.connected())


def _resume(work: Work) -> None:
    work.driver.resume(work.connected())


def _rewire(work: Work) -> None:
    server = work.server
    status = server.before if server.status == VERIFY_RESIZE else server.status
    guest = work.connected(up=status not in (RESERVED, SHUTOFF, PAUSED, SUSPENDED))
    vif_plugging.sweep(work.compute)  # an interface that the server had may be allocated to another one
    try:
        work.driver.rewire(guest)
    except VirtError:
        volume_attachments.settle(work.compute, work.server, done=False)
        raise


def _reboot(work: Work) -> None:
    work.driver.stop(work.guest, kindly=work.server.task == REBOOT)
    work.check()
    _run(work)


def _snapshot(work: Work) -> None:
    image_data.save(work.compute, work.guest, work.server.task_image or "", work.check)
    backups.rotate(work.compute, work.server.task_image or "")


def _shelve(work: Work) -> None:
    compute, image = work.compute, work.server.task_image or ""
    if not image_data.is_made(compute, image):
        work.driver.stop(work.guest, kindly=work.server.status == ACTIVE)
        _snapshot(work)
        # Recorded before the guest is deleted: afterwards the image is the only copy of its disk.
        if not image_data.is_made(compute, image):
            raise VirtError("the image that the server is shelved in is gone")
    work.clear()


def _rebuild(work: Work) -> None:
    work.check()
    work.driver.delete(work.server.id)
    _run(work)
    if work.server.status == SHUTOFF:
        work.driver.stop(work.guest, kindly=False)
        work.connected(up=False)


def _rescue(work: Work) -> None:
    """Start a server from the image that rescues it, or from its own disk again."""
    work.driver.stop(replace(work.guest, rescued=False), kindly=work.server.status == ACTIVE)
    work.check()
    _run(work)


def _resize(work: Work) -> None:
    """Resize a server; one that is shut off gets its size when it is started."""
    if (work.server.status if work.server.task == RESIZE else work.server.before) == ACTIVE:
        work.driver.stop(work.guest)
        work.check()
        _run(work)


def _revert(work: Work) -> None:
    """Revert to the old size, or from the destination of a migration to the source."""
    if migration_steps.leave_destination(work):
        return
    _resize(work)
    if work.server.migration_id is not None and work.server.before == SHUTOFF:
        work.connected(up=False)


TASK_FUNCTIONS: Mapping[str, TaskFunction] = {
    SPAWN: _run,
    RESERVE: _reserve,
    WAKE: _run,
    STOP: _stop,
    START: _run,
    PAUSE: _quiet(lambda driver, guest: driver.pause(guest)),
    UNPAUSE: _unpause,
    SUSPEND: _quiet(lambda driver, guest: driver.suspend(guest)),
    RESUME: _resume,
    REBOOT: _reboot,
    REBOOT_HARD: _reboot,
    SNAPSHOT: _snapshot,
    SHELVE: _shelve,
    UNSHELVE: _run,
    REBUILD: _rebuild,
    RESCUE: _rescue,
    UNRESCUE: _rescue,
    RESIZE: _resize,
    REVERT: _revert,
    MIGRATE: migration_steps.migrate,
    EVACUATE: migration_steps.evacuate,
    LIVE_MIGRATE: live_migration.migrate,
    REWIRE: _rewire,
    DELETE: Work.clear,
}
"""Task -> function that carries it out."""

CONNECTING = frozenset(
    {SPAWN, WAKE, START, RESUME, REBOOT, REBOOT_HARD, UNSHELVE, REBUILD, REWIRE, EVACUATE, RESCUE, UNRESCUE}
)
"""Tasks that connect the volumes of a guest."""
