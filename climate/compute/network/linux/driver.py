"""Network driver for one Linux host, in a network namespace or in the machine's own network."""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from ipaddress import IPv6Address
from pathlib import Path

from climate.compute.errors import NetworkError
from climate.compute.linux import netns
from climate.compute.network.driver import DhcpEvent, Entry, ExistingResources, Link, Nat, NetworkServices, Plug
from climate.compute.network.linux import atomic_files, commands
from climate.compute.network.linux.daemons.dhcp import DhcpServers
from climate.compute.network.linux.daemons.radvd import RouterAdverts
from climate.compute.network.linux.layer2 import AUTO, Layer2
from climate.compute.network.linux.nat import IptablesNat, NftNat
from climate.compute.network.render.port_filter import FilterRule

_RIGHTS = {12: "CAP_NET_ADMIN", 21: "CAP_SYS_ADMIN"}


class LinuxNetwork:
    """NetworkDriver for Linux. All processes of one host must use the same folder."""

    def __init__(self, namespace: str | None, folder: Path, segments: str = AUTO, nat: str = "nft") -> None:
        """Create the driver. `segments`: VLAN transport, as Layer2 takes it; `nat`: nft or iptables."""
        self._namespace = namespace
        self._chosen = segments
        self._ground = Layer2(namespace, folder, segments)
        self._dhcp = DhcpServers(namespace, folder / "dhcp")
        self._adverts = RouterAdverts(namespace, folder / "ra")
        self._translating = folder / "nat"
        self._served = folder / "served"
        ways: tuple[NftNat | IptablesNat, ...] = (NftNat(namespace), IptablesNat(namespace))
        self._nat, self._former = ways if nat == "nft" else ways[::-1]
        self._alone = False
        self._guards: dict[str, tuple[FilterRule, ...] | None] = {}

    @property
    def real(self) -> bool:
        """Return True: guests get interfaces of the kernel."""
        return True

    def trouble(self) -> str | None:
        """Return why the driver cannot work on this host, or None if it can."""
        if self._namespace is not None and not netns.exists(self._namespace):
            return f"There is no network namespace {self._namespace}."
        lacking = [name for bit, name in _RIGHTS.items() if not _rights() >> bit & 1]
        if lacking:
            return f"Networks need root or a user namespace: this process lacks {', '.join(lacking)}."
        try:
            self._ground.marked()
            # A transport chosen by name must work; the automatic one is tried only when a VLAN is needed.
            if self._chosen != AUTO:
                _ = self._ground.segment
        except NetworkError as error:
            return str(error)
        return commands.missing("nft")

    def standing(self) -> ExistingResources:
        """Return the resources of climate that exist on the host, read from the host."""
        marked = self._ground.marked()
        served = self._dhcp.running() | self._adverts.running() | {each for each, gateway in marked.items() if gateway}
        return ExistingResources(networks=served | marked.keys(), served=served, plugs=self._ground.plugs())

    def ensure(self, link: Link) -> None:
        """Create the bridge of a network, and attach it."""
        self._ground.ensure(link)

    def mtu(self, link: Link) -> int:
        """Return the MTU of a network on this host."""
        return self._ground.mtu(link)

    def remove(self, network_id: str) -> None:
        """Remove the bridge and the services of a network; guests' interfaces are left without a bridge."""
        self.unserve(network_id)
        self._ground.remove(network_id)

    def remove_unused(self, network_id: str) -> None:
        """Remove the bridge of a network that no guest on this host uses, unless this host serves the network."""
        self._ground.remove_unused(network_id)

    def serve(self, served: NetworkServices) -> IPv6Address | None:
        """Ensure the link, start DHCP and router advertisements. Return the bridge's link-local
        address if IPv6 is on.
        """
        mark = self._served / served.link.network_id
        with atomic_files.alone(self._served):
            mark.unlink(missing_ok=True)
        router = self._brought_up(served)
        with atomic_files.alone(self._served):
            atomic_files.write(mark, _sign(served))
        return router

    def unchanged(self, served: Sequence[NetworkServices]) -> frozenset[str]:
        """Return the ids of the networks that were served like this, and whose bridge and daemons exist."""
        gateways = {network_id for network_id, gateway in self._ground.marked().items() if gateway}
        handed_out, announced = gateways & self._dhcp.running(), self._adverts.running()
        return frozenset(
            one.link.network_id
            for one in served
            if one.link.network_id in (gateways if one.dhcp is None else handed_out)
            and (one.prefix_v6 is None or one.link.network_id in announced)
            and atomic_files.read(self._served / one.link.network_id) == _sign(one)
        )

    def _brought_up(self, served: NetworkServices) -> IPv6Address | None:
        self._ground.ensure(served.link)
        link = replace(served.link, mtu=self._ground.mtu(served.link))
        if served.dhcp is None:
            self._dhcp.stop(link.network_id)
        else:
            self._dhcp.start(link, served.dhcp)
        if served.prefix_v6 is None:
            self._adverts.stop(link.network_id)
            return None
        router = self._ground.link_local(link)
        self._adverts.start(link, served.prefix_v6)
        return router

    def unserve(self, network_id: str) -> None:
        """Stop DHCP and router advertisements, and remove the gateway's address from the bridge."""
        (self._served / network_id).unlink(missing_ok=True)
        self._dhcp.stop(network_id)
        self._adverts.stop(network_id)
        self._ground.let_go(network_id)

    def translate(self, nat: Nat) -> None:
        """Replace all address translation on the host."""
        with atomic_files.alone(self._translating):
            if not self._alone:
                # The operator may have switched from the other implementation.
                self._former.forget()
                self._alone = True
            self._nat.apply(nat)

    def plug(self, plug: Plug) -> None:
        """Connect a guest's interface to its network, with anti-spoofing rules."""
        self._ground.plug(plug)
        self._guards[plug.name] = plug.rules

    def guard(self, plug: Plug) -> None:
        """Replace the rules of a guest's interface that is plugged; do nothing if it is not."""
        if plug.name not in self._guards or self._guards[plug.name] != plug.rules:
            self._ground.guard(plug)
            self._guards[plug.name] = plug.rules

    def unplug(self, name: str) -> None:
        """Remove a guest's interface."""
        self._guards.pop(name, None)
        self._ground.unplug(name)

    def drop_netns(self, netns: str) -> None:
        """Remove a guest's network namespace."""
        self._ground.drop_netns(netns)

    def release(self, link: Link, entry: Entry) -> None:
        """Release a DHCP lease on behalf of its client; the server reports the release in `happened`."""
        self._dhcp.release(link, entry)

    def happened(self) -> Sequence[DhcpEvent]:
        """Return the unacknowledged events of DHCP clients, oldest first."""
        return self._dhcp.happened()

    def forget(self, keys: Sequence[str]) -> None:
        """Acknowledge events that were recorded, so that they are not reported again."""
        self._dhcp.forget(keys)

    def clear(self) -> None:
        """Remove all resources of climate from a host that leaves the deployment."""
        standing = self.standing()
        for name in sorted(standing.plugs):
            self.unplug(name)
        for network_id in sorted(standing.networks):
            self.remove(network_id)
        self._nat.clear()
        self._former.forget()


def _sign(served: NetworkServices) -> str:
    """Return a digest of the way a network is served."""
    return hashlib.sha256(repr(served.timeless).encode()).hexdigest()


def _rights() -> int:
    """Return the capabilities of this process as a bit mask."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
