"""Orders of a cluster to the service of a member for the steps of a live migration, see virt/live_migrator.py.

An order to send is answered after some seconds: while the guest is not sent, the answer says so, and the cluster
orders it again. Keys of the migration are sealed in orders and answers.
"""

from collections.abc import Callable, Mapping
from typing import Any

from climate.compute.context import Compute
from climate.compute.errors import VirtError
from climate.compute.virt import Guest, VirtDriver
from climate.compute.virt.hypervisor_cluster.live_moves import RoundOver, Watcher, abort
from climate.compute.virt.hypervisor_cluster.server_placements import ServerPlacements
from climate.compute.virt.live_migrator import LiveMigrator, opened, opened_result, sealed

OFFER, RECEIVE, SEND = "live-offer", "live-receive", "live-send"
KEEP, CLEAR, DROP = "live-keep", "live-clear", "live-drop"

UNDER_WAY, SENT = "under_way", "sent"
"""Keys of the answer to SEND."""

SENDERS = "senders"
"""Folder below `clusters` in the home with a lock per server that is being sent: a dead sender holds none."""

Said = Mapping[str, Any]


def execute_order(compute: Compute, verb: str, guest: Guest, said: Said) -> object:
    """Carry out one step for a guest of this service, and return its answer. Raise VirtError."""
    return _VERBS[verb](compute, _migrator(compute.driver, guest.node), guest, said)


def drop(driver: VirtDriver, said: Said) -> None:
    """Delete a guest that waits here for its memory."""
    _migrator(driver, str(said["member"])).drop(str(said["server_id"]))


def _receive(compute: Compute, migrator: LiveMigrator, guest: Guest, said: Said) -> object:
    missing = [volume.id for volume in guest.volumes if not volume.home.is_dir()]
    if missing:
        raise VirtError(f"the volume {missing[0]} does not exist at {compute.service_host}: share the volumes")
    return sealed(compute.vault, migrator.receive(guest, said["offer"]))


def _send(compute: Compute, migrator: LiveMigrator, guest: Guest, said: Said) -> object:
    arrangement = opened(compute.vault, said["arrangement"])
    with ServerPlacements(compute.home / "clusters" / SENDERS).holding(guest.id, wait=False) as held:
        if not held:
            return {UNDER_WAY: True}  # an earlier order is not over yet
        try:
            sent = migrator.send(guest, arrangement, compute.live_limits, abort if said["abort"] else Watcher())
        except RoundOver:
            return {UNDER_WAY: True}
    return {SENT: sealed(compute.vault, sent)}


_VERBS: Mapping[str, Callable[[Compute, LiveMigrator, Guest, Said], object]] = {
    OFFER: lambda compute, migrator, guest, said: migrator.offer(guest),
    RECEIVE: _receive,
    SEND: _send,
    KEEP: lambda compute, migrator, guest, said: migrator.keep(guest, opened_result(compute.vault, said["sent"])),
    CLEAR: lambda compute, migrator, guest, said: migrator.clear(guest, said["arrangement"]),
}

VERBS = frozenset(_VERBS)
"""Steps that name a guest of the cluster."""


def _migrator(driver: VirtDriver, node: str) -> LiveMigrator:
    live = driver.live(node)
    if live is None:
        raise VirtError(f"the driver of member {node} cannot migrate running servers")
    return live
