"""Machines with a Redfish controller: one resource to read, one action to request.

DMTF DSP0268, ComputerSystem: `PowerState`, and `#ComputerSystem.Reset` with the reset types that this system allows.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from marshmallow import Schema, ValidationError, fields, validate

from climate.power import OFF, ON, UNKNOWN, PowerError, PowerRefused, Target
from climate.power.driver_settings import PowerSettings, accepted, is_machine
from climate.power.http_session import Controller, Session, run_session

STATES = {"On": ON, "Off": OFF}
"""Known states; all others count as between them."""

NOTHING_TO_ASK = {"on": ("On", "PoweringOn"), "off": ("Off", "PoweringOff"), "hard off": ("Off",)}
"""States in which there is nothing to request, by requested state."""

RESETS = {"on": ("On", "ForceOn"), "off": ("GracefulShutdown",), "hard off": ("ForceOff",)}
"""Reset types by requested state, in order of preference. PushPowerButton may do either and is used for neither."""

ACTION = "#ComputerSystem.Reset"
ALLOWED = "ResetType@Redfish.AllowableValues"

_ADDRESS = re.compile(
    r"https?://(?:\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\]|([A-Za-z0-9.-]+))(?::([0-9]{1,5}))?/?\Z", re.ASCII
)
_PATH = re.compile(r"(?:/[A-Za-z0-9_.~%$()'+,;=:@-]+)+/?\Z", re.ASCII)
# No control characters, and no surrogates.
_USER = re.compile(r"[^\x00-\x1f\x7f:\ud800-\udfff]{1,255}\Z")
_PASSWORD = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,255}\Z")


def _is_address(text: str) -> None:
    match = _ADDRESS.match(text)
    v6, name, port = match.groups() if match else (None, None, None)
    if not is_machine(v6 or name or "") or not 0 < int(port or 443) < 65536:
        raise ValidationError("It must be a URL without a path, such as https://bmc.example or https://192.0.2.7:8443.")


class Verify(fields.Field[bool | str]):
    """Certificate verification: true, false, or the path of a file of certificate authorities."""

    def _deserialize(
        self, value: object, attr: str | None, data: Mapping[str, object] | None, **_: object
    ) -> bool | str:
        if isinstance(value, bool) or (isinstance(value, str) and value.startswith("/") and value.isprintable()):
            return value
        raise ValidationError("It must be true, false, or the absolute path of a file of certificates.")


class RedfishSettings(PowerSettings):
    """Address and credentials of the system."""

    address = fields.String(
        required=True,
        validate=[validate.Length(max=300), _is_address],
        metadata={"description": "The controller, such as https://bmc.example."},
    )
    system = fields.String(
        required=True,
        validate=[validate.Length(max=500), validate.Regexp(_PATH, error="It must be like /redfish/v1/Systems/1.")],
        metadata={"description": "The system's path there, such as /redfish/v1/Systems/1."},
    )
    username = fields.String(
        required=True,
        validate=validate.Regexp(_USER, error="It must be of 1 to 255 characters, without colons and line ends."),
    )
    password = fields.String(
        required=True,
        load_only=True,
        validate=validate.Regexp(_PASSWORD, error="It must be of 1 to 255 characters, without line ends."),
    )
    verify = Verify(
        load_default=True,
        metadata={"description": "Check its certificate: true, false, or the path of a file with authorities."},
    )


class RedfishDriver:
    """Reads the resource for each call, and keeps no state."""

    schema: ClassVar[type[Schema]] = RedfishSettings
    secrets: ClassVar[frozenset[str]] = frozenset({"password"})

    def __init__(self, folder: Path) -> None:
        """Create the driver; it keeps nothing in the folder."""

    def state(self, target: Target) -> str:
        controller, path = _found(target)

        async def read_state(session: Session) -> str:
            return STATES.get(_state(await session.get(path)), UNKNOWN)

        return run_session(controller, read_state)

    def on(self, target: Target) -> None:
        _reset(target, "on")

    def off(self, target: Target, *, hard: bool = False) -> None:
        _reset(target, "hard off" if hard else "off")


def _found(target: Target) -> tuple[Controller, str]:
    """Return the controller of a host, and the path of its system there."""
    given = accepted(RedfishSettings, target)
    user = (given["username"], given["password"])
    address = given["address"].rstrip("/")
    return Controller(target.host, address, user, given["verify"], given["timeout_seconds"]), given["system"]


def _reset(target: Target, wanted: str) -> None:
    controller, path = _found(target)

    async def request_reset(session: Session) -> None:
        system = await session.get(path)
        if _state(system) not in NOTHING_TO_ASK[wanted]:
            where, kind = _action(system, wanted, controller)
            await session.post(where, {"ResetType": kind})

    run_session(controller, request_reset)


def _state(system: Mapping[str, object]) -> str:
    """Return the PowerState of the service, or an empty text if there is none."""
    state = system.get("PowerState")
    return state if isinstance(state, str) else ""


def _action(system: Mapping[str, object], wanted: str, controller: Controller) -> tuple[str, str]:
    """Return (path, type) of the reset action. Raise PowerRefused when this system allows no suitable type."""
    actions = system.get("Actions")
    action = actions.get(ACTION) if isinstance(actions, dict) else None
    path = action.get("target") if isinstance(action, dict) else None
    # Only a path is accepted, because the password goes to the resulting address.
    if not isinstance(action, dict) or not isinstance(path, str) or not _PATH.match(path):
        raise PowerError(f"{controller} names no path for the reset of its system")
    allowed = action.get(ALLOWED)
    for kind in RESETS[wanted]:
        if not isinstance(allowed, list) or kind in allowed:
            return path, kind
    raise PowerRefused(f"{controller} does not offer {' or '.join(RESETS[wanted])}")
