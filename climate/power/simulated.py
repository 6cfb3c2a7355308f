"""Simulated machines, for tests and for the demo, shared by all its processes.

The state of a machine is in a file named like its host; a machine without a file is on. A power change takes some time,
and faults can be injected.
"""

import fcntl
import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import ClassVar
from urllib.parse import quote

from marshmallow import Schema, fields, validate

from climate.power import OFF, ON, UNKNOWN, PowerError, PowerFenced, PowerRefused, Target
from climate.power.driver_settings import PowerSettings, accepted


class Trouble(StrEnum):
    """Faults that can be injected into a machine."""

    NONE = ""
    FAILS = "fails"
    """The supply reports an error."""
    HANGS = "hangs"
    """The supply does not answer in time."""
    REFUSES = "refuses"
    """The supply refuses the user."""
    STUCK = "stuck"
    """The supply accepts every request and carries out none, unless power is cut."""


class MemorySettings(PowerSettings):
    """Durations of power changes of a machine."""

    boot_seconds = fields.Float(load_default=2.0, validate=validate.Range(0, 3600))
    shutdown_seconds = fields.Float(load_default=1.0, validate=validate.Range(0, 3600))
    password = fields.String(load_default="", load_only=True, validate=validate.Length(max=255))


@dataclass(frozen=True, slots=True)
class Machine:
    """State of a machine: its target, and when it gets there, in seconds since 1970."""

    is_on: bool = True
    settled_at: float = 0.0
    trouble: Trouble = Trouble.NONE
    switches: int = 0
    """Number of power changes that have begun."""
    token: int = 0
    """Highest token of a power request."""

    def state(self, now: float) -> str:
        if now < self.settled_at:
            return UNKNOWN
        return ON if self.is_on else OFF

    def with_request(self, is_on: bool, now: float, seconds: float, *, hard: bool) -> "Machine":
        """Return the machine after a power request that takes effect within so many seconds."""
        due = now + seconds
        if self.is_on is is_on and self.settled_at <= due:
            return self
        if self.trouble is Trouble.STUCK and not hard:
            return self
        return replace(self, is_on=is_on, settled_at=due, switches=self.switches + 1)


@dataclass
class MemoryDriver:
    """Driver of simulated machines; all drivers over one folder share them."""

    folder: Path
    now: Callable[[], float] = time.time
    calls: deque[tuple[str, str]] = field(default_factory=lambda: deque(maxlen=1000))
    """(method, host) of the latest calls of this object, in order."""

    schema: ClassVar[type[Schema]] = MemorySettings
    secrets: ClassVar[frozenset[str]] = frozenset({"password"})

    def state(self, target: Target) -> str:
        self.calls.append(("state", target.host))
        timeout = accepted(self.schema, target)["timeout_seconds"]
        machine = self.machine(target.host)
        _answers(machine, target.host, timeout)
        return machine.state(self.now())

    def on(self, target: Target) -> None:
        self._switch("on", target, is_on=True)

    def off(self, target: Target, *, hard: bool = False) -> None:
        self._switch("hard off" if hard else "off", target, is_on=False)

    def machine(self, host: str) -> Machine:
        """Return the state of a machine."""
        with self._locked():
            return self._read(host)

    def inject(self, host: str, trouble: Trouble) -> None:
        """Inject a fault into a machine, in all processes; NONE removes it."""
        with self._locked():
            self._write(host, replace(self._read(host), trouble=trouble))

    def _switch(self, verb: str, target: Target, *, is_on: bool) -> None:
        self.calls.append((verb, target.host))
        given, hard = accepted(self.schema, target), verb == "hard off"
        seconds = 0.0 if hard else given["boot_seconds" if is_on else "shutdown_seconds"]
        with self._locked():
            machine = self._read(target.host)
            _answers(machine, target.host, given["timeout_seconds"])
            if target.token < machine.token:
                raise PowerFenced(f"a later decision has switched {target.host}")
            asked = machine.with_request(is_on, self.now(), seconds, hard=hard)
            self._write(target.host, replace(asked, token=target.token))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the folder among threads and processes. Raise PowerError when it is unusable."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / "lock").open("a") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                yield
        except OSError as error:
            raise PowerError(f"the folder of simulated machines cannot be used: {error.strerror}") from error

    def _path(self, host: str) -> Path:
        return self.folder / f"{quote(host, safe='', errors='surrogatepass')}.json"

    def _read(self, host: str) -> Machine:
        try:
            machine = Machine(**json.loads(self._path(host).read_text(encoding="utf-8")))
            return replace(machine, trouble=Trouble(machine.trouble))
        except FileNotFoundError:
            return Machine()
        except (ValueError, TypeError):
            raise PowerError(f"the state of the simulated machine {host} cannot be read") from None

    def _write(self, host: str, machine: Machine) -> None:
        with NamedTemporaryFile("w", dir=self.folder, prefix=".new-", delete=False) as file:
            json.dump(asdict(machine), file)
        Path(file.name).replace(self._path(host))


def _answers(machine: Machine, host: str, timeout: float) -> None:
    """Raise the error of the machine's fault, if it has one that keeps the supply from answering."""
    match machine.trouble:
        case Trouble.FAILS:
            raise PowerError(f"the power supply of {host} failed")
        case Trouble.HANGS:
            raise PowerError(f"the power supply of {host} did not answer within {timeout:g} s")
        case Trouble.REFUSES:
            raise PowerRefused(f"the power supply of {host} refuses this user")
        case _:
            return
