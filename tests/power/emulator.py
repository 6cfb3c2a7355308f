"""Redfish systems as the emulator of sushy-tools shows them, whose states follow when a test says so."""

import math
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import bcrypt
from werkzeug.serving import make_server

USER, PASSWORD = "admin", "correct horse"

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # they are of the packages that it stands on
    from sushy_tools.emulator import main
    from sushy_tools.emulator.resources.systems.fakedriver import FakeDriver


class Systems(FakeDriver):
    """The emulator's own systems, except that nothing is left to chance."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, str]] = []

    def add(self) -> str:
        system = {"uuid": str(uuid4()), "name": f"fake-{uuid4().hex}", "power_state": "Off", "nics": []}
        self._systems[system["uuid"]] = system
        return str(system["uuid"])

    def be(self, uuid: str, state: str) -> None:
        self._systems[uuid] = {**self._systems[uuid], "power_state": state, "pending_power": None}

    def set_power_state(self, identity: str, state: str) -> None:
        self.asked.append((identity, state))
        super().set_power_state(identity, state)
        self._due(identity, math.inf)

    def settle(self, uuid: str) -> None:
        self._due(uuid, 0)
        self.get_power_state(uuid)

    def _due(self, uuid: str, moment: float) -> None:
        system: dict[str, Any] = self._systems[uuid]
        if system.get("pending_power"):
            system["pending_power"]["apply_time"] = moment
            self._systems[uuid] = system


@dataclass(frozen=True)
class Emulator:
    address: str
    systems: Systems


def prepared(folder: Path) -> Systems:
    """The emulator's one application, with systems of ours."""
    digest = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (folder / "users").write_text(f"{USER}:{digest}\n")
    main.app.configure(
        extra_config={
            "SUSHY_EMULATOR_FAKE_DRIVER": True,
            "SUSHY_EMULATOR_FAKE_SYSTEMS": [],
            "SUSHY_EMULATOR_STATE_DIR": os.fspath(folder),
            "SUSHY_EMULATOR_AUTH_FILE": os.fspath(folder / "users"),
        }
    )
    systems = Systems.initialize(main.app.config, main.app.logger)()
    # Where the application looks for its systems before it makes some.
    look = main.Application.systems.fget.__wrapped__
    main.app._cache = {look: {(frozenset(), frozenset()): systems}}
    return systems


@contextmanager
def serving(systems: Systems, certificate: tuple[str, str] | None = None) -> Iterator[Emulator]:
    """The emulator on a port of its own; with a certificate, over TLS."""
    server = make_server("127.0.0.1", 0, main.app, threaded=True, ssl_context=certificate)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield Emulator(f"http{'s' if certificate else ''}://127.0.0.1:{server.server_port}", systems)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
