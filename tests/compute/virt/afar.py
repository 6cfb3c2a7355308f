"""Drivers of QEMU that are on different machines, as far as one can tell by what they offer."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from climate.compute.virt import Guest
from climate.compute.virt.live_migrator import LiveMigrator
from climate.compute.virt.qemu.driver import QemuDriver
from climate.compute.virt.qemu.live_migration import QemuMigrator
from climate.compute.virt.qemu.migration_ports import PortRange
from tests.compute.virt.driver_cases import Subject


def _own_loopback() -> str:
    """Return a loopback address of this process: no other test may listen on a port that a guest has left."""
    pid = os.getpid()
    return f"127.{1 + (pid >> 16) % 254}.{pid >> 8 & 255}.{pid & 255}"


LISTENING = PortRange.of(_own_loopback())


@dataclass(frozen=True)
class DriverAfar(QemuDriver):
    """A driver on a machine of that name."""

    machine: str = ""

    def live(self, node: str) -> LiveMigrator:
        return MigratorAfar(self.homes, self.accel, self.start_seconds, self.listening, self.machine)


@dataclass(frozen=True)
class MigratorAfar(QemuMigrator):
    machine: str = ""

    def offer(self, guest: Guest) -> Mapping[str, Any]:
        return {**super().offer(guest), "machine": self.machine}


def afar(subject: Subject, machine: str) -> Subject:
    """The subject on a machine of that name, which takes guests of others at the loopback address."""
    assert subject.homes is not None
    folder = subject.homes.folder
    driver = DriverAfar(folder, accel="tcg", stop_seconds=5, listening=LISTENING, machine=machine)
    return replace(subject, driver=driver, again=lambda: driver)
