"""Volumes as guests have them: a disk of a virtual machine, or a folder."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climate.compute import storage
from climate.compute.virt.qemu import qmp

FOLDER = "volumes"
"""In the home of a guest that is a process, and at the root of a container: a folder for each volume, by its id."""

FIRST_SLOT = 0x10
"""Of the PCI bus, for the first volume of a virtual machine; lower ones are for what it is built with."""

_NAME_LENGTH = 30


@dataclass(frozen=True, slots=True)
class Attached:
    """A volume of a guest.  `device` is its place among them, from 1; `home` the folder of the volume."""

    id: str
    device: int
    home: Path

    @property
    def name(self) -> str:
        """What QEMU calls it: at most 31 characters."""
        return f"v{self.id.replace('-', '')[:_NAME_LENGTH]}"

    @property
    def address(self) -> str:
        """The PCI slot of the disk, which it keeps when the memory of a guest is put away and read again."""
        return f"0x{FIRST_SLOT + self.device - 1:x}"

    def disk(self) -> Path:
        """The file of a disk; VirtError while a folder of the volume is in use."""
        return storage.disk(self.home)

    def folder(self) -> Path:
        """The folder of the volume; mounted where that can be done."""
        return storage.data(self.home)

    def block(self) -> dict[str, Any]:
        """The disk, as QEMU is told of it."""
        file = {"driver": "file", "filename": str(self.disk())}
        return {"driver": "raw", "node-name": self.name, "discard": "unmap", "file": file}

    def device_options(self) -> dict[str, Any]:
        """The device on which a guest finds the disk, as QEMU is told of it; its serial number begins the id."""
        plugged = {"driver": "virtio-blk-pci", "id": f"d{self.name[1:]}", "drive": self.name}
        return {**plugged, "addr": self.address, "serial": self.id[:20]}


def link(home: Path, volumes: Iterable[Attached]) -> None:
    """Let the folder of a guest lead to its volumes, and to no others."""
    folder = home / FOLDER
    wanted = {one.id: one for one in volumes}
    if not home.is_dir() or not (wanted or folder.is_dir()):
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    for there in folder.iterdir():
        if there.name not in wanted:
            there.unlink()
    for volume_id, one in wanted.items():
        there = one.folder()  # mounted anew where the machine was started again
        if not (folder / volume_id).is_symlink():
            (folder / volume_id).symlink_to(there)


def unlink(home: Path) -> None:
    """Let the folder of a guest lead to no volume."""
    shutil.rmtree(home / FOLDER, ignore_errors=True)


def plug(monitor: qmp.Monitor, volumes: Iterable[Attached]) -> None:
    """Let a running QEMU have these disks, and no others.  VirtError where the guest does not let go of one."""
    wanted = {one.name: one for one in volumes}
    nodes = {node["node-name"] for node in monitor.ask("query-named-block-nodes")}
    there = {name for name in nodes if len(name) == _NAME_LENGTH + 1 and name.startswith("v")}
    for name in sorted(there - set(wanted)):
        _unplug(monitor, name)
    for name in sorted(set(wanted) - there, key=lambda name: wanted[name].device):
        monitor.ask("blockdev-add", **wanted[name].block())
        monitor.ask("device_add", **wanted[name].device_options())


def _unplug(monitor: qmp.Monitor, name: str) -> None:
    device = f"d{name[1:]}"
    present = {one["qdev"].rsplit("/", 2)[-2] for one in monitor.ask("query-block") if one.get("qdev")}
    if device in present:
        monitor.ask("device_del", id=device)
        monitor.event(lambda data: data.get("device") == device, "DEVICE_DELETED")
    monitor.ask("blockdev-del", node_name=name)
