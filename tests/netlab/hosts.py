"""Fixtures: the network drivers of the lab's hosts, which leave nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from climate.compute.linux import netns
from climate.compute.network.linux.driver import LinuxNetwork
from climate.sandbox.topology import Lab
from tests.netlab.guests import GUEST

On = Callable[..., LinuxNetwork]
"""The driver of the host of that name; how it carries VLANs may follow."""


@pytest.fixture
def on(lab: Lab, tmp_path: Path) -> Iterator[On]:
    made: dict[str, LinuxNetwork] = {}

    def driver(host: str, way: str = "auto") -> LinuxNetwork:
        return made.setdefault(host, LinuxNetwork(host, tmp_path / host, way))

    yield driver
    for there in (there for host, there in made.items() if netns.exists(host)):
        standing = there.standing()
        for name in standing.plugs:
            there.unplug(name)
        for network in standing.networks:
            there.remove(network)
    for name in (name for name in netns.names() if name.startswith(GUEST)):
        netns.drop(name)
