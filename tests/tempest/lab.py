"""Deployment for scenarios: real networks in a lab of network namespaces, and servers that accept SSH."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from climate.cli.operations import lab as lab_command
from climate.compute.models.node import NodeSpec
from climate.compute.nodes import nodes_file
from climate.sandbox import topology
from climate.sandbox.enter import with_system_programs
from climate.sandbox.entry_command import words
from climate.sandbox.features import probe
from climate.settings import Settings
from tests.system.api_client import Api
from tests.system.second_service import FILE, SECOND, Second, is_ready
from tests.system.stack import Stack, await_so
from tests.tempest import guest
from tests.tempest.configuration import Cloud
from tests.tempest.deployment import NODE, SETTINGS, described, started, uploaded

MANAGER = "flat_dhcp"
NEEDED = (*lab_command.NEEDED, "udhcpc", "ping", "bwrap", "qemu-system-x86_64", "qemu-img")
_STACKS_OWN = ("CLIMATE_HOME", "CLIMATE_PORT", "CLIMATE_HOST", "CLIMATE_PUBLIC_URL")
SHARED = ("images", "keys", "volumes")
"""Folders of a home that all compute services share."""
FLAVORS = ("1", "2")
"""Flavors with memory enough for a virtual machine."""
MACHINES = "tempest-machines"
"""Node of virtual machines, beside that of containers."""


def lacks(environ: Mapping[str, str]) -> str | None:
    """Return why there can be no lab here, with the fix; None if there can be one."""
    return probe(environ).lacks(NEEDED)


def enter(module: str, arguments: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Replace this process by the same command inside a lab."""
    inner = [sys.executable, "-m", "climate.sandbox.run_lab", "--", sys.executable, "-m", module, *arguments]
    argv = words(inner)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(argv[0], argv, with_system_programs(environ))


@contextmanager
def running(home: Path) -> Iterator[Stack]:
    """Run a deployment in this lab as long as the block lasts."""
    lab = topology.described()
    found = lab_command.surroundings(Settings(home=home), MANAGER)
    settings = {name: value for name, value in found.items() if name not in _STACKS_OWN}
    _route(lab)
    stack = Stack(
        home,
        {**SETTINGS, **settings, "CLIMATE_NETWORK_SECONDS": "1", "CLIMATE_VOLUME_GB_PER_PROJECT": "20"},
        arguments=(),
    )
    hosts = zip((NODE, MACHINES), ("container", "qemu"), lab.computes, strict=True)
    nodes_file.write(home, [NodeSpec(name, 64, 65536, 400, driver=kind, netns=host) for name, kind, host in hosts])
    with started(stack), _second(stack, home.with_name("second-home"), lab.computes[1]):
        yield stack


@contextmanager
def _second(stack: Stack, home: Path, host: str) -> Iterator[None]:
    """Run a second compute service with one node for containers, which shares what services share."""
    home.mkdir()
    for name in SHARED:
        (stack.home / name).mkdir(exist_ok=True)
        (home / name).symlink_to(stack.home / name, target_is_directory=True)
    nodes_file.write(home, [NodeSpec(SECOND, 64, 65536, 400, driver="container", netns=host)], FILE)
    made, admin = Second(stack, home), Api(stack.home, "climate")
    try:
        made.start()
        await_so(lambda: is_ready(admin), 300, "the second service")
        yield
    finally:
        admin.close()
        made.stop()


def _route(lab: topology.Lab) -> None:
    """Lead the floating IPs from the tests, which run beside the APIs, to the network host."""
    gateway = next(
        cable.address for cable in lab.cables if cable.host == lab.network and cable.interface == topology.INNER
    )
    assert gateway is not None
    route = ("ip", "route", "replace", str(lab.floating), "via", str(gateway.ip))
    subprocess.run(route, check=True)


def cloud(stack: Stack) -> Cloud:
    """Create the images, and return the properties of the deployment."""
    api = Api(stack.home, "climate")
    try:
        content = guest.CONTAINER.read_bytes()
        first, second = (uploaded(api, name, content, hypervisor_type="container") for name in ("ssh", "ssh-alt"))
        return replace(
            described(stack, api, (first, second)), flavors=FLAVORS, machine=guest.MACHINE, hosts=(NODE, SECOND)
        )
    finally:
        api.close()
