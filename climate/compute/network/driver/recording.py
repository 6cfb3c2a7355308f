"""Network driver that only records calls, and renders the files that the Linux driver would write.

It is the equivalent of Nova's fake_network option, implements the same protocol, and never touches the machine.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv6Address
from pathlib import Path

from climate.compute.network.driver import (
    DhcpAction,
    DhcpEvent,
    Entry,
    ExistingResources,
    Link,
    Nat,
    NetworkServices,
    Plug,
)
from climate.compute.network.render import dnsmasq, iptables, nat_iptables, nat_nft, radvd

_LINK_LOCAL = IPv6Address("fe80::1")
"""Link-local address returned for every bridge."""


def _nothing(verb: str) -> None:
    """Do nothing: the default hook, which never fails."""


@dataclass
class RecordingNetwork:
    """Network of one host. `folder` is the path used in rendered files; `fails` is called before each method and may
    raise.
    """

    folder: Path = Path("/var/lib/climate/networks")
    fails: Callable[[str], None] = _nothing
    links: dict[str, Link] = field(default_factory=dict)
    serving: dict[str, NetworkServices] = field(default_factory=dict)
    plugs: dict[str, Plug] = field(default_factory=dict)
    nat: Nat | None = None
    events: dict[str, DhcpEvent] = field(default_factory=dict)
    _told: int = 0

    @property
    def real(self) -> bool:
        return False

    def trouble(self) -> str | None:
        return None

    def standing(self) -> ExistingResources:
        self.fails("standing")
        return ExistingResources(
            networks=frozenset({*self.links, *self.serving}),
            served=frozenset(self.serving),
            plugs=frozenset(self.plugs),
        )

    def ensure(self, link: Link) -> None:
        self.fails("ensure")
        before = self.links.get(link.network_id)
        # A link without an address leaves the bridge's address unchanged, as on a real bridge.
        kept = replace(link, gateway=before.gateway, gateway_v6=before.gateway_v6) if before else link
        self.links[link.network_id] = link if link.gateway or link.gateway_v6 else kept

    def remove(self, network_id: str) -> None:
        self.fails("remove")
        self.links.pop(network_id, None)
        self.serving.pop(network_id, None)

    def remove_unused(self, network_id: str) -> None:
        self.fails("remove_unused")
        used = any(plug.link.network_id == network_id for plug in self.plugs.values())
        if not used and network_id not in self.serving:
            self.links.pop(network_id, None)

    def serve(self, served: NetworkServices) -> IPv6Address | None:
        self.fails("serve")
        self._served_files(served)  # Render now: invalid values are refused as on a real host.
        self.links[served.link.network_id] = served.link
        self.serving[served.link.network_id] = served
        return _LINK_LOCAL if served.prefix_v6 is not None else None

    def unchanged(self, served: Sequence[NetworkServices]) -> frozenset[str]:
        self.fails("unchanged")
        before = {network_id: one.timeless for network_id, one in self.serving.items()}
        return frozenset(one.link.network_id for one in served if before.get(one.link.network_id) == one.timeless)

    def unserve(self, network_id: str) -> None:
        self.fails("unserve")
        self.serving.pop(network_id, None)
        if (link := self.links.get(network_id)) is not None:
            self.links[network_id] = replace(link, gateway=None, gateway_v6=None)

    def translate(self, nat: Nat) -> None:
        self.fails("translate")
        nat_nft.ruleset(nat)
        self.nat = nat

    def plug(self, plug: Plug) -> None:
        self.fails("plug")
        self.ensure(plug.link)
        self.plugs[plug.name] = plug

    def guard(self, plug: Plug) -> None:
        self.fails("guard")
        if plug.name in self.plugs:
            self.plugs[plug.name] = replace(self.plugs[plug.name], rules=plug.rules)

    def unplug(self, name: str) -> None:
        self.fails("unplug")
        self.plugs.pop(name, None)

    def drop_netns(self, netns: str) -> None:
        self.fails("drop_netns")
        self.plugs = {name: plug for name, plug in self.plugs.items() if plug.netns != netns}

    def release(self, link: Link, entry: Entry) -> None:
        self.fails("release")
        if link.network_id in self.serving:
            self.simulate(link.network_id, DhcpAction.RELEASED, entry)

    def simulate(self, network_id: str, what: DhcpAction, entry: Entry) -> None:
        """Simulate an event of a DHCP client."""
        self._told += 1
        key = f"{self._told:012d}"
        self.events[key] = DhcpEvent(key, network_id, what, entry.mac, entry.address)

    def happened(self) -> Sequence[DhcpEvent]:
        self.fails("happened")
        return tuple(self.events.values())

    def forget(self, keys: Sequence[str]) -> None:
        self.fails("forget")
        for key in keys:
            self.events.pop(key, None)

    def files(self) -> dict[str, str]:
        """Return the files of all served networks and of the translation, by name."""
        served = {name: text for one in self.serving.values() for name, text in self._served_files(one).items()}
        return served | ({} if self.nat is None else _translation(self.nat))

    def text(self) -> str:
        """Return all files as one text."""
        return "\n".join(f"== {name}\n{text}" for name, text in sorted(self.files().items()))

    def _served_files(self, served: NetworkServices) -> dict[str, str]:
        link, dhcp = served.link, served.dhcp
        files = dnsmasq.Files(self.folder, link.network_id)
        rendered = {}
        if dhcp is not None:
            rendered = {
                "dnsmasq": " ".join(dnsmasq.command(link, dhcp, files)) + "\n",
                "hosts": dnsmasq.hosts(dhcp.entries, dhcp.domain),
                "opts": dnsmasq.options(dhcp.entries, dhcp),
                "leases": dnsmasq.leases(dhcp.entries, dhcp.lease_seconds),
            }
        if served.prefix_v6 is not None:
            rendered["radvd.conf"] = radvd.conf(link, served.prefix_v6)
        return {f"{link.bridge}/{name}": text for name, text in rendered.items()}


def _translation(nat: Nat) -> dict[str, str]:
    tables = nat_iptables.tables(nat)
    return {
        "nft": nat_nft.ruleset(nat),
        "iptables": iptables.apply("", tables.v4),
        "ip6tables": iptables.apply("", tables.v6),
    }
