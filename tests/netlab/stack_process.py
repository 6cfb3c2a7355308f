"""Starting a whole climate in the lab, and stopping it with nothing left behind."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from climate.cli.operations import lab as lab_command
from climate.compute.linux import processes
from climate.compute.network.linux.driver import LinuxNetwork
from climate.compute.servers.interfaces.vif_plugging import netns_of
from climate.compute.virt.guest_folders import MARK
from climate.sandbox.features import ProbeResult
from climate.sandbox.topology import Lab
from climate.settings import Settings
from tests.netlab import guests
from tests.netlab.stack import PATIENCE, Region
from tests.system.api_client import Api
from tests.system.stack import Stack, await_so

_STACKS_OWN = ("CLIMATE_HOME", "CLIMATE_PORT", "CLIMATE_HOST", "CLIMATE_PUBLIC_URL")


@contextmanager
def region(lab: Lab, home: Path, manager: str, more: Mapping[str, str] | None = None) -> Iterator[Region]:
    """`climate up` as `climate lab` would start it, with these settings besides."""
    found = lab_command.surroundings(Settings(home=home), manager)
    settings = {name: value for name, value in found.items() if name not in _STACKS_OWN}
    stack = Stack(home, {**settings, "CLIMATE_NETWORK_SECONDS": "1", "CLIMATE_POOLS_SECONDS": "1", **(more or {})})
    lab_command.furnish(home, ProbeResult(frozenset({"bwrap"})))
    try:
        stack.start()
        await_so(lambda: _tended(lab, home, manager), PATIENCE, "the first look at the network host")
        admin, member = Api(home, "climate"), Api(home, "climate-demo")
        yield Region(lab, stack, admin, member)
        admin.close()
        member.close()
    finally:
        stack.stop()
        for host in lab.hosts:
            LinuxNetwork(host, home / "networks" / host).clear()
    assert stack.left() == [], stack.tail()


def _tended(lab: Lab, home: Path, manager: str) -> bool:
    """Whether the network host has what is there before any server: so that it is not taken for what one has left."""
    translated = "table inet climate\n" in guests.said(lab.network, "nft", "list", "tables")
    serves = manager == "flat_dhcp"
    return translated and bool(LinuxNetwork(lab.network, home / "networks" / lab.network).standing().served) >= serves


def silent_until_woken(place: Region) -> None:
    """The promise of a RESERVED server: its address from the boot call on, and no packet before its lease has begun."""
    (awake,) = place.running("awake")
    sleeper = place.sleeper("sleeper")
    try:
        address = place.addresses(sleeper)[0]
        assert place.server(sleeper)["status"] == "RESERVED"
        assert guests.silent(netns_of(awake), address)
        assert guests.packets_from(place.host_of(sleeper), place.port(sleeper)) == 0
        assert list(processes.carrying({MARK: sleeper})) == []
        place.wake(sleeper)
        await_so(lambda: place.reaches(awake, address), PATIENCE, "an answer of the one that was woken")
        await_so(lambda: place.configured(sleeper) == address, PATIENCE, "the address that was promised")
        assert guests.packets_from(place.host_of(sleeper), place.port(sleeper)) > 0
    finally:
        place.delete(sleeper, awake)
