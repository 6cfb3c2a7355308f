"""The service of a member of a cluster: its offer, and the orders of the cluster's service that it carries out.

Orders are rows in the database, written by climate.compute.clusters.remote_members. Paths in them are relative to the
home, because the services share the folders of images and volumes.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from climate.compute.clusters import migration_orders
from climate.compute.clusters.cluster_spec import MemberSpec
from climate.compute.context import Compute
from climate.compute.errors import VirtError
from climate.compute.metadata import config_drives
from climate.compute.models.server import Server
from climate.compute.store.nodes import cluster_members as rows
from climate.compute.store.servers import servers
from climate.compute.virt import Guest, VirtDriver, shared_storage
from climate.compute.virt.hypervisor_cluster.server_placements import guest_of, guest_said
from climate.compute.virt.multi_node import MultiNodeDriver
from climate.database.connections import reading

log = structlog.get_logger(__name__)

MAKING = frozenset({"prepare", "run"})
"""Verbs that create something of a server; allowed only while its row says that it is on the cluster."""

Said = Mapping[str, Any]

_VERBS: Mapping[str, Callable[[VirtDriver, Guest, Said], object]] = {
    "prepare": lambda driver, guest, said: driver.prepare(guest),
    "run": lambda driver, guest, said: driver.run(guest),
    "stop": lambda driver, guest, said: driver.stop(guest, kindly=bool(said["kindly"])),
    "pause": lambda driver, guest, said: driver.pause(guest),
    "unpause": lambda driver, guest, said: driver.unpause(guest),
    "suspend": lambda driver, guest, said: driver.suspend(guest),
    "resume": lambda driver, guest, said: driver.resume(guest),
    "rewire": lambda driver, guest, said: driver.rewire(guest),
    "snapshot": lambda driver, guest, said: driver.snapshot(guest, Path(said["target"])),
    "console": lambda driver, guest, said: driver.console(guest, said["lines"]),
}
"""Verbs on a guest -> function, which returns the answer, if any."""

_ON_SERVERS: Mapping[str, Callable[[VirtDriver, str], object]] = {
    "delete": lambda driver, server_id: _delete(driver, server_id),
    "disconnect": lambda driver, server_id: _disconnect(driver, server_id),
}
"""Verbs on what is left of a server -> function."""


def machine() -> str:
    """Return an id that is equal for two services if each can find and end all processes of the other."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    if not boot.exists():
        return ""
    return f"{boot.read_text(encoding='ascii').strip()} {os.readlink('/proc/self/ns/pid')} {os.getuid()}"


def report(compute: Compute) -> None:
    """Report the cluster members of this service; skips the database if there are none.

    A member whose storage is gone is not offered: its cluster restarts its servers elsewhere, with their disks.
    """
    driver = compute.driver
    if isinstance(driver, MultiNodeDriver) and (offers := _offers(driver)):
        disks = {one.driver: shared_storage.identity(driver.members[one.driver]) for _, one in offers}
        with compute.engine.begin() as conn:
            rows.report(conn, rows.MemberOffer(compute.service_host, machine(), disks), offers, compute.now(conn))


def _offers(driver: MultiNodeDriver) -> list[tuple[str, MemberSpec]]:
    offers = driver.offers()
    wrong = {one.driver: shared_storage.trouble(driver.members[one.driver]) for _, one in offers}
    for name, reason in wrong.items():
        if reason is not None:
            log.error("the members of a driver are not offered to clusters", driver=name, reason=reason)
    return [(cluster, one) for cluster, one in offers if wrong[one.driver] is None]


def execute_order(compute: Compute, order_id: str) -> None:
    """Carry out an order to this service, and answer it; nothing if there is none, or it came too late."""
    with compute.engine.begin() as conn:
        order = rows.begin(conn, order_id, compute.service_host, compute.now(conn))
    if order is None:
        return
    answer, error = None, None
    try:
        answer = _done(compute, *order)
    except VirtError as reason:
        error = str(reason)
    with compute.engine.begin() as conn:
        rows.finish(conn, order_id, answer, error, compute.now(conn))


def _done(compute: Compute, verb: str, said: Said) -> Any:
    driver = compute.driver
    if verb == "states":
        return {server_id: state.value for server_id, state in driver.states().items()}
    if verb in _ON_SERVERS:
        return _ON_SERVERS[verb](driver, str(said["server_id"]))
    if verb == migration_orders.DROP:
        return migration_orders.drop(driver, said)
    if verb not in _VERBS and verb not in migration_orders.VERBS:
        raise VirtError(f"a member of a cluster has no order {verb!r}")
    guest = rooted(guest_of(said["guest"]), compute.home)
    if verb in MAKING:
        # Created here: it may hold keys, which no order may contain.
        guest = replace(guest, config=config_drives.of_server(compute, _server_of(compute, guest, said)))
    if verb in migration_orders.VERBS:
        _server_of(compute, guest, said)
        return migration_orders.execute_order(compute, verb, guest, said)
    if "target" in said:
        said = {**said, "target": str(compute.home / said["target"])}
    return _VERBS[verb](driver, guest, said)


def _delete(driver: VirtDriver, server_id: str) -> None:
    driver.delete(server_id)
    _disconnect(driver, server_id)


def _disconnect(driver: VirtDriver, server_id: str) -> None:
    if isinstance(driver, MultiNodeDriver):
        driver.disconnect(server_id)


def _server_of(compute: Compute, guest: Guest, said: Said) -> Server:
    """Return the server; VirtError if it is on the cluster no more: it was moved to another node, or deleted."""
    with reading(compute.engine) as conn:
        server = servers.get(conn, guest.id)
    if server is None or (server.service_host, server.node) != (said["by"], said["cluster"]):
        raise VirtError(f"server {guest.id} is not on the cluster any more")
    return server


def guest_view(guest: Guest, home: Path) -> Mapping[str, object]:
    """Return a guest as JSON for an order, with paths relative to the home of the writer, and without its drive."""
    return guest_said(replace(_moved(guest, lambda path: _below(path, home)), config={}, again=None))


def rooted(guest: Guest, home: Path) -> Guest:
    """Return the guest of an order, with paths in the home of the reader."""
    return _moved(guest, lambda path: home / path)


def _below(path: Path, home: Path) -> Path:
    return path.relative_to(home) if path.is_relative_to(home) else path


def _moved(guest: Guest, move: Callable[[Path], Path]) -> Guest:
    volumes = tuple(replace(volume, home=move(volume.home)) for volume in guest.volumes)
    return replace(guest, image=None if guest.image is None else move(guest.image), volumes=volumes)
