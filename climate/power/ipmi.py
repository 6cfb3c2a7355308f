"""Machines with an IPMI 2.0 controller on the network, through the program ipmitool.

ipmitool gets the password in its environment, never in its arguments, which all users of the machine can read. It is
killed when it takes too long, or when this process ends. Errors do not repeat its output.
"""

import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from marshmallow import Schema, ValidationError, fields, validate

from climate import supervised_command
from climate.power import OFF, ON, PowerError, PowerRefused, Target
from climate.power.driver_settings import PowerSettings, accepted, is_machine
from climate.supervised_command import End, Outcome, Run

PROGRAM = "ipmitool"
VERBS = {"on": "on", "off": "soft", "hard off": "off"}
"""Arguments of `chassis power` by requested state."""
STATES = {"chassis power is on": ON, "chassis power is off": OFF}

SUITE = "does not take this cipher suite"
REFUSALS: Mapping[str, str] = {
    "rakp 2 hmac is invalid": "does not accept the password",
    "unauthorized name": "knows no such user",
    "unauthorized role": "does not give this user that privilege",
    "failed: insufficient privilege": "does not let this user do it",
    "no matching cipher suite": SUITE,
    "invalid authentication algorithm": SUITE,
    "invalid integrity algorithm": SUITE,
    "invalid confidentiality algorithm": SUITE,
    "is not what we requested": SUITE,
}
"""Texts of ipmitool for which a retry is useless, and their meaning."""

LONGEST_OUTPUT = 64 * 1024
"""Bytes of the output of ipmitool that are read."""

_USER = re.compile(r"[A-Za-z0-9_.@][A-Za-z0-9_.@-]{0,15}\Z", re.ASCII)
_PASSWORD = re.compile(r"[\x20-\x7e]{1,20}\Z", re.ASCII)


def _is_machine(text: str) -> None:
    if not is_machine(text):
        raise ValidationError("It must be the name or the address of a machine, such as bmc.example or 192.0.2.7.")


class IpmiSettings(PowerSettings):
    """Address and credentials of the controller."""

    address = fields.String(
        required=True,
        validate=_is_machine,
        metadata={"description": "The controller, such as bmc.example."},
    )
    port = fields.Integer(load_default=623, strict=True, validate=validate.Range(1, 65535))
    username = fields.String(
        required=True,
        validate=validate.Regexp(_USER, error="It must be of 1 to 16 letters, digits and _ . @ -, no - at first."),
    )
    password = fields.String(
        required=True,
        load_only=True,
        validate=validate.Regexp(_PASSWORD, error="It must be of 1 to 20 characters of ASCII."),
    )
    privilege = fields.String(
        load_default="OPERATOR",
        validate=validate.OneOf(["OPERATOR", "ADMINISTRATOR"]),
        metadata={"description": "What the session may do; operators may switch."},
    )
    cipher_suite = fields.Integer(
        load_default=3,
        strict=True,
        validate=validate.OneOf([3, 17]),
        metadata={"description": "3: SHA-1, which all have; 17: SHA-256."},
    )


@dataclass(frozen=True)
class IpmiDriver:
    """Runs ipmitool for each call, and keeps no state in the folder."""

    folder: Path
    program: str = PROGRAM

    schema: ClassVar[type[Schema]] = IpmiSettings
    secrets: ClassVar[frozenset[str]] = frozenset({"password"})

    def state(self, target: Target) -> str:
        return self._session(target).state()

    def on(self, target: Target) -> None:
        session = self._session(target)
        if session.state() != ON:
            session.power(VERBS["on"])

    def off(self, target: Target, *, hard: bool = False) -> None:
        session = self._session(target)
        if session.state() != OFF:
            session.power(VERBS["hard off" if hard else "off"])

    def _session(self, target: Target) -> "Session":
        given = accepted(IpmiSettings, target)
        program = shutil.which(self.program)
        if program is None:
            raise PowerRefused(f"{self.program} is not installed (Debian: ipmitool)")
        options = {"-C": given["cipher_suite"], "-H": given["address"], "-p": given["port"]}
        options |= {"-U": given["username"], "-L": given["privilege"]}
        argv = (program, "-I", "lanplus", "-v", "-E", *(str(part) for pair in options.items() for part in pair))
        return Session(target.host, argv, given["password"], given["timeout_seconds"])


@dataclass(frozen=True)
class Session:
    """One call of the driver: any number of runs of ipmitool, with one total time-out."""

    host: str
    argv: tuple[str, ...]
    password: str = field(repr=False)
    seconds: float
    began: float = field(default_factory=time.monotonic)

    def __str__(self) -> str:
        return f"the controller of {self.host}"

    def state(self) -> str:
        """Return ON or OFF: IPMI has no state between."""
        said = [line.strip().lower() for line in self.power("status").splitlines()]
        for line, state in STATES.items():
            if line in said:
                return state
        raise PowerError(f"{self} does not report the power state")

    def power(self, verb: str) -> str:
        """Return the output of ipmitool."""
        outcome, said = self._run("chassis", "power", verb)
        match outcome.end:
            case End.NOT_STARTED:
                raise PowerRefused(f"{self.argv[0]} {outcome.failure}")
            case End.TIMED_OUT:
                raise PowerError(f"{self} did not answer within {self.seconds:g} s")
        if not outcome.failure:
            return said
        for words, meaning in REFUSALS.items():
            if words in said.lower():
                raise PowerRefused(f"{self} {meaning}")
        raise PowerError(f"{self} cannot be reached, or could not carry out the request (ipmitool {outcome.failure})")

    def _run(self, *words: str) -> tuple[Outcome, str]:
        """Run ipmitool, which ends with this process: a late request would undo that of another worker."""
        environ = {"IPMI_PASSWORD": self.password, "LC_ALL": "C"}
        left = max(0, self.began + self.seconds - time.monotonic())
        with tempfile.TemporaryFile() as output:
            outcome = supervised_command.execute(Run([*self.argv, *words], left, environ, output=output.fileno()))
            output.seek(0)
            return outcome, output.read(LONGEST_OUTPUT).decode("utf-8", "replace")
