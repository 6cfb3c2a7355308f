"""`climate up --demo zones`: a tree of four complete deployments on this machine, to try zones on."""

import contextlib
import secrets
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from climate.cli import demo_stack
from climate.cli.client import Client
from climate.cli.clouds import find
from climate.cli.failures import ERROR, USAGE, Failure
from climate.cli.session import Session

TREE: Mapping[str, str | None] = {"parent": None, "child-1": "parent", "child-2": "parent", "grandchild": "child-1"}
"""Zone -> its parent; parents stand before their children."""

FOLDER = "zones"

SETTINGS = {
    "CLIMATE_WEB_PROCESSES": "1",
    "CLIMATE_WORKER_PROCESSES": "2",
    "CLIMATE_ZONE_POLL_SECONDS": "5",
}
"""Used unless the environment says otherwise: four deployments share the machine."""


@dataclass(frozen=True, slots=True)
class DemoZone:
    """One deployment of the tree."""

    name: str
    home: Path
    port: int
    url: str

    @property
    def api_url(self) -> str:
        return f"{self.url}/compute/v2.1"


def run(session: Session, port: int | None) -> int:
    """Start the tree, register the children, and keep everything running until a signal asks for the end."""
    settings = session.settings
    if settings.database_url or settings.redis_url:
        raise Failure(
            "each zone has stores of its own, but CLIMATE_DATABASE_URL or CLIMATE_REDIS_URL is set", USAGE, "unset them"
        )
    zones = _zones(settings.home.absolute() / FOLDER, settings.host, port or settings.port)
    with ExitStack() as stacks, contextlib.suppress(SystemExit, KeyboardInterrupt):
        for zone in zones.values():
            session.say(f"starting {zone.name} at {zone.url}, in {zone.home}")
            environ = surroundings(session.environ, settings.host, zone)
            stacks.enter_context(demo_stack.running(environ, lambda spent: None))
        for name, parent in TREE.items():
            if parent is not None:
                register(zones[parent], zones[name])
                session.say(f"{name} is a child of {parent}")
        session.say(f"the zones are ready; begin with: CLIMATE_HOME={zones['parent'].home} climate zone list")
        threading.Event().wait()
    session.say("the zones are stopped")
    return 0


def surroundings(environ: Mapping[str, str], host: str, zone: DemoZone) -> dict[str, str]:
    """The environment of one deployment."""
    kept = {name: value for name, value in environ.items() if not name.startswith("OS_")}
    own = {
        "CLIMATE_HOME": str(zone.home),
        "CLIMATE_HOST": host,
        "CLIMATE_PORT": str(zone.port),
        "CLIMATE_PUBLIC_URL": "",
        "CLIMATE_ZONE_NAME": zone.name,
        "CLIMATE_BUILD_PLAN_ENCRYPTION_KEY": secrets.token_hex(32),
        "CLIMATE_COMPUTE_HOST": f"{zone.name}-compute",
    }
    return {**SETTINGS, **kept, **own}


def register(parent: DemoZone, child: DemoZone) -> None:
    """Make one deployment a child of another with its administrator's account; repeating it changes nothing."""
    password = (child.home / "admin-password").read_text(encoding="utf-8").strip()
    body = {"api_url": child.api_url, "username": "admin", "password": password}
    with _client(parent) as client:
        known = {zone["api_url"]: zone for zone in client.json("compute", "GET", "/zones")["zones"]}
        if child.api_url in known:
            path = f"/zones/{known[child.api_url]['id']}"
            client.json("compute", "PUT", path, json={"zone": {"password": password}})
        else:
            client.json("compute", "POST", "/zones", json={"zone": body})


@contextlib.contextmanager
def _client(zone: DemoZone) -> Iterator[Client]:
    client = Client(find(None, {}, zone.home))
    try:
        yield client
    finally:
        client.close()


def _zones(home: Path, host: str, first_port: int) -> dict[str, DemoZone]:
    ports = range(first_port, first_port + len(TREE))
    _check_ports(host, ports)
    shown: Any = f"[{host}]" if ":" in host else host
    return {
        name: DemoZone(name, home / name, port, f"http://{shown}:{port}")
        for name, port in zip(TREE, ports, strict=True)
    }


def _check_ports(host: str, ports: range) -> None:
    for port in ports:
        try:
            with socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET):
                pass
        except (OSError, OverflowError) as error:
            hint = "the tree needs four ports in a row; choose the first by --port"
            raise Failure(f"port {port} cannot be used: {error}", ERROR, hint) from None
