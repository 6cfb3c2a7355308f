"""climate lab: everything with real networks, in a sandbox that removes itself."""

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import click
import yaml

from climate.cli.connection.session import Session, current
from climate.cli.errors import ERROR, Failure
from climate.sandbox import entry_command, features, topology
from climate.sandbox.enter import with_system_programs
from climate.sandbox.features import ProbeResult
from climate.settings import METADATA_HERE, Settings

HOME = "var/lab"
HOSTS = topology.described().hosts
MANAGERS = ("flat", "flat_dhcp", "vlan")
MANAGER = "flat_dhcp"
NEEDED = ("ip", "veth", "bridge", "nft", "dnsmasq")
EVERYWHERE = "0.0.0.0"  # noqa: S104 - address in the sandbox
SIZES: Mapping[str, tuple[int, int, int]] = {"gpu": (8, 32768, 200), "std": (4, 8192, 80)}
"""CPUs, MB of memory and GB of disk of the nodes of a kind."""
NODES = ("gpu-1", "gpu-2", "gpu-3", "gpu-4", "std-1", "std-2")


@click.command("lab")
@click.argument("command", nargs=-1, metavar="[COMMAND]...")
@click.option("--manager", type=click.Choice(MANAGERS), default=MANAGER, show_default=True, help="Of networks.")
@click.option("--port", type=click.IntRange(1, 65535), help="Port of the APIs, instead of CLIMATE_PORT.")
def command(command: tuple[str, ...], manager: str, port: int | None) -> None:
    """Run `climate up --demo`, or a COMMAND (after --), with real networks among hosts that are namespaces."""
    session = current()
    result = features.probe(session.environ)
    if lacks := result.lacks(NEEDED):
        raise Failure(
            f"a lab is not possible here: {lacks}", ERROR, "run `climate up --demo` for a cloud without real networks"
        )
    _own_stores(session.settings)
    home = Path(session.environ.get("CLIMATE_HOME") or HOME).absolute()
    settings = replace(session.settings, home=home)
    settings = replace(settings, port=port) if port else settings
    environ = with_system_programs({**session.environ, **surroundings(settings, manager)})
    if command:
        furnish(home, result)
        _become(entry_command.words([*_stage(manager), "--", *command]), environ)
    listener = _listener(settings)
    furnish(home, result)
    stage = [*_stage(manager), "--listen", str(listener.fileno()), str(settings.port), "--"]
    session.say(f"networks are real: namespaces {', '.join(HOSTS)}; everything is kept in {home}")
    _become(entry_command.words([*stage, sys.executable, "-m", "climate", "up", "--demo"], session=True), environ)


_STAGE = (sys.executable, "-m", "climate.sandbox.run_lab")


def _stage(manager: str) -> list[str]:
    """Return the command that runs in the lab; an operator would create the bridges of flat networks."""
    return [*_STAGE, *(["--bridge", Settings().flat_network_bridge] if manager == "flat" else [])]


def instead(session: Session, home: Path, words: Sequence[str]) -> str:
    """Replace this process by the command in a lab with this home; return the reason if that is impossible."""
    result = features.probe(session.environ)
    if lacks := result.lacks(NEEDED):
        return lacks
    if session.settings.database_url or session.settings.redis_url:
        return "stores with URLs are not reachable from a lab"
    nodes = home / "nodes.yaml"
    if nodes.exists() and "netns:" not in nodes.read_text(encoding="utf-8", errors="replace"):
        return f"the nodes in {nodes} are on no hosts of a lab"
    furnish(home, result)
    # Nothing outside can connect, so the listen addresses stay the same.
    settings = replace(session.settings, home=home)
    own = {**surroundings(settings, MANAGER), "CLIMATE_HOST": settings.host}
    return _become(entry_command.words([*_STAGE, "--", *words]), with_system_programs({**session.environ, **own}))


def surroundings(settings: Settings, manager: str) -> dict[str, str]:
    """Return the environment of processes in the lab."""
    lab = topology.described()
    return {
        "CLIMATE_HOME": str(settings.home),
        "CLIMATE_HOST": EVERYWHERE,
        "CLIMATE_PORT": str(settings.port),
        "CLIMATE_PUBLIC_URL": settings.base_url,
        "CLIMATE_NETWORK_DRIVER": "linux",
        "CLIMATE_NETWORK_NETNS": lab.network,
        "CLIMATE_NETWORK_MANAGER": manager,
        "CLIMATE_FLAT_INTERFACE": topology.FLAT,
        "CLIMATE_VLAN_INTERFACE": topology.INNER,
        "CLIMATE_PUBLIC_INTERFACE": topology.OUTER,
        "CLIMATE_ROUTING_SOURCE_IP": str(lab.public.ip),
        "CLIMATE_METADATA_ADDRESS": METADATA_HERE,
        "CLIMATE_FLOATING_RANGE": str(lab.floating),
        "CLIMATE_FLOATING_CIDR": str(lab.public.network),
    }


def _own_stores(settings: Settings) -> None:
    for name, url in ("CLIMATE_DATABASE_URL", settings.database_url), ("CLIMATE_REDIS_URL", settings.redis_url):
        if url:
            reason = f"{name} is set, and the lab reaches no network but its own"
            raise Failure(reason, ERROR, "unset it: the lab starts stores of its own")


def furnish(home: Path, probed: ProbeResult) -> None:
    """Write the nodes file of the compute hosts unless it exists."""
    driver = "container" if "bwrap" in probed.features else "process"
    file = home / "nodes.yaml"
    if file.exists():
        return
    computes = topology.described().computes
    home.mkdir(parents=True, exist_ok=True)
    entries = [_node(name, computes[number % len(computes)], driver) for number, name in enumerate(NODES)]
    file.write_text(yaml.safe_dump(entries, sort_keys=False), encoding="utf-8")


def _node(name: str, host: str, driver: str) -> dict[str, object]:
    vcpus, memory, disk = SIZES[name.partition("-")[0]]
    return {"name": name, "vcpus": vcpus, "memory_mb": memory, "local_gb": disk, "driver": driver, "netns": host}


def _listener(settings: Settings) -> socket.socket:
    """Return the port of the APIs, opened outside and served from inside."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        where = f"{settings.host} port {settings.port}"
        reason = f"{where} cannot be used ({error.strerror})"
        raise Failure(reason, ERROR, "choose another with --port or CLIMATE_PORT") from None
    listener.listen(128)
    listener.set_inheritable(True)
    return listener


def _become(words: list[str], environ: Mapping[str, str]) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(words[0], words, environ)  # noqa: S606 - there is no shell
