"""Volumes of guests: a disk of a virtual machine, or a folder."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climate.compute import volume_directory
from climate.compute.virt.qemu import qmp

FOLDER = "volumes"
"""Folder of a process guest, or at a container's root, with one folder per volume id."""

FIRST_SLOT = 0x10
"""PCI slot of a virtual machine's first volume; lower slots belong to built-in devices."""

_NAME_LENGTH = 30


@dataclass(frozen=True, slots=True)
class Attached:
    """Volume of a guest. `device` is its index, from 1; `home` is the folder of the volume."""

    id: str
    device: int
    home: Path

    @property
    def name(self) -> str:
        """Return its name in QEMU, of at most 31 characters."""
        return f"v{self.id.replace('-', '')[:_NAME_LENGTH]}"

    @property
    def address(self) -> str:
        """Return the PCI slot of the disk, which must not change while a guest is suspended."""
        return f"0x{FIRST_SLOT + self.device - 1:x}"

    def disk(self) -> Path:
        """Return the disk file. Raise VirtError while the volume's folder is in use."""
        return volume_directory.disk(self.home)

    def folder(self) -> Path:
        """Return the folder of the volume, mounted if possible."""
        return volume_directory.data(self.home)

    def block(self) -> dict[str, Any]:
        """Return QEMU's block device options."""
        file = {"driver": "file", "filename": str(self.disk())}
        return {"driver": "raw", "node-name": self.name, "discard": "unmap", "file": file}

    def device_options(self) -> dict[str, Any]:
        """Return QEMU's device options; the disk's serial number starts with the volume's id."""
        plugged = {"driver": "virtio-blk-pci", "id": f"d{self.name[1:]}", "drive": self.name}
        return {**plugged, "addr": self.address, "serial": self.id[:20]}


def link(home: Path, volumes: Iterable[Attached]) -> None:
    """Link exactly these volumes into a guest's folder."""
    folder = home / FOLDER
    wanted = {volume.id: volume for volume in volumes}
    if not home.is_dir() or not (wanted or folder.is_dir()):
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    for there in folder.iterdir():
        if there.name not in wanted:
            there.unlink()
    for volume_id, one in wanted.items():
        there = one.folder()  # Mounts are gone after a reboot of the machine.
        if not (folder / volume_id).is_symlink():
            (folder / volume_id).symlink_to(there)


def unlink(home: Path) -> None:
    """Remove all links to volumes from a guest's folder."""
    shutil.rmtree(home / FOLDER, ignore_errors=True)


def plug(monitor: qmp.Monitor, volumes: Iterable[Attached]) -> None:
    """Ensure that a running QEMU has exactly these disks. Raise VirtError if the guest does not release one."""
    wanted = {volume.name: volume for volume in volumes}
    nodes = {node["node-name"] for node in monitor.execute("query-named-block-nodes")}
    there = {name for name in nodes if len(name) == _NAME_LENGTH + 1 and name.startswith("v")}
    for name in sorted(there - set(wanted)):
        _unplug(monitor, name)
    for name in sorted(set(wanted) - there, key=lambda name: wanted[name].device):
        monitor.execute("blockdev-add", **wanted[name].block())
        monitor.execute("device_add", **wanted[name].device_options())


def _unplug(monitor: qmp.Monitor, name: str) -> None:
    device = f"d{name[1:]}"
    present = {one["qdev"].rsplit("/", 2)[-2] for one in monitor.execute("query-block") if one.get("qdev")}
    if device in present:
        monitor.execute("device_del", id=device)
        monitor.event(lambda data: data.get("device") == device, "DEVICE_DELETED")
    monitor.execute("blockdev-del", node_name=name)
