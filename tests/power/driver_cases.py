"""The drivers under test, each with a machine that is seen from outside."""

import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from climate.power import ON, PowerDriver, Target
from climate.power.ipmi import IpmiDriver
from climate.power.redfish import RedfishDriver
from climate.power.simulated import MemoryDriver, Trouble
from tests.power import bmc, emulator

SHORT = 0.4
"""Time-out in seconds where a test waits for it."""


@dataclass
class Subject:
    """`wrong`, `silent`, `closed` and `unknown` give targets at which something is the matter."""

    driver: PowerDriver
    target: Target
    be: Callable[[str], None]
    """Bring the machine into a state, by its own switch."""
    settle: Callable[[], None]
    """Let the machine follow what it was asked for."""
    asked: Callable[[], int]
    """How many requests have reached it."""
    wrong: Callable[[], Target]
    silent: Callable[[], Target]
    closed: Callable[[], Target]
    unknown: Callable[[], Target] | None = None
    late: str = "off"
    """What the driver says of a machine that was asked to be on, and is not yet."""


@dataclass
class Clock:
    moment: float = 1_000_000.0

    def __call__(self) -> float:
        return self.moment


@dataclass
class Ports:
    """Ports at which nobody answers, until they are given back."""

    taken: list[socket.socket] = field(default_factory=list)

    def take(self, kind: int, *, listening: bool) -> int:
        self.taken.append(socket.socket(socket.AF_INET, kind))
        self.taken[-1].bind(("127.0.0.1", 0))
        if listening:
            self.taken[-1].listen()
        port: int = self.taken[-1].getsockname()[1]
        return port


def changed(target: Target, **settings: Any) -> Target:
    return replace(target, settings={**target.settings, **settings})


def with_password(target: Target, password: str) -> Target:
    return replace(target, secrets={"password": password})


def memory(folder: Path) -> Subject:
    clock = Clock()
    driver = MemoryDriver(folder, clock)
    target = Target("n1", {"boot_seconds": 20.0, "shutdown_seconds": 5.0})

    def settle() -> None:
        clock.moment += 20

    def be(state: str) -> None:
        driver.on(target) if state == ON else driver.off(target)
        settle()

    def told(trouble: Trouble) -> Callable[[], Target]:
        def tell() -> Target:
            driver.inject("n1", trouble)
            return changed(target, timeout_seconds=SHORT)

        return tell

    refuses, hangs, fails = told(Trouble.REFUSES), told(Trouble.HANGS), told(Trouble.FAILS)
    asked = lambda: driver.machine("n1").switches  # noqa: E731
    return Subject(driver, target, be, settle, asked, refuses, hangs, fails, refuses, late="unknown")


def redfish(folder: Path, systems: emulator.Systems, address: str, ports: Ports) -> Subject:
    uuid = systems.add()
    settings = {"address": address, "system": f"/redfish/v1/Systems/{uuid}", "username": emulator.USER}
    target = Target("n1", settings, {"password": emulator.PASSWORD})

    def at(*, listening: bool) -> Callable[[], Target]:
        def taken() -> Target:
            port = ports.take(socket.SOCK_STREAM, listening=listening)
            return changed(target, address=f"http://127.0.0.1:{port}", timeout_seconds=SHORT if listening else 10.0)

        return taken

    return Subject(
        RedfishDriver(folder),
        target,
        be=lambda state: systems.be(uuid, state.capitalize()),
        settle=lambda: systems.settle(uuid),
        asked=lambda: [one for one, _ in systems.asked].count(uuid),
        wrong=lambda: with_password(target, "wrong horse"),
        silent=at(listening=True),
        closed=at(listening=False),
        unknown=lambda: changed(target, system="/redfish/v1/Systems/none"),
    )


def ipmi(folder: Path, machine: bmc.Machine, ports: Ports) -> Subject:
    machine.be("off")
    settings = {"address": "127.0.0.1", "port": machine.port, "username": bmc.USER}
    target = Target("n1", settings, {"password": bmc.PASSWORD})

    def at(*, bound: bool) -> Callable[[], Target]:
        def taken() -> Target:
            port = ports.take(socket.SOCK_DGRAM, listening=False)
            if not bound:
                ports.taken.pop().close()
            return changed(target, port=port, timeout_seconds=SHORT)

        return taken

    return Subject(
        IpmiDriver(folder),
        target,
        be=machine.be,
        settle=machine.settle,
        asked=lambda: len(machine.asked),
        wrong=lambda: with_password(target, "wrong horse"),
        silent=at(bound=True),
        closed=at(bound=False),
    )


def needs_ipmitool() -> None:
    """Skip the test where ipmitool is missing, unless every driver is required to work here."""
    if shutil.which("ipmitool") is None:
        reason = "ipmitool is not installed (Debian: ipmitool)"
        if os.environ.get("CLIMATE_TEST_DRIVERS") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
