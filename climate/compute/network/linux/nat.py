"""Address translation of a host by nftables or iptables, which replaces any earlier state.

Changes of floating addresses may be interrupted at any point. An address whose target changes is first removed from
its interface, and connections of an added address are deleted.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address

from climate.compute.errors import NetworkError
from climate.compute.linux import netns
from climate.compute.network.driver import Nat
from climate.compute.network.linux import commands, floating_addresses, netlink
from climate.compute.network.linux.floating_addresses import Held
from climate.compute.network.render import iptables, nat_iptables, nat_nft
from climate.compute.network.render.nat_common import METADATA, metadata_target

TRIES = 5
"""Number of attempts of iptables-restore while another process holds its lock, as in Nova's linux_net."""

_LEADS = re.compile(
    rf"^-A {nat_iptables.BINARY}-PREROUTING -d ([0-9.]+)/32 -j DNAT --to-destination ([0-9.]+)$", re.MULTILINE
)
_CHAINS = f":{nat_iptables.BINARY}-"
_UNFILTERED = tuple(f"bridge/bridge-nf-call-{name}" for name in ("iptables", "ip6tables", "arptables"))

Leads = Mapping[IPv4Address, IPv4Address]
"""Floating address -> fixed address."""


@dataclass(frozen=True, slots=True)
class NftNat:
    """Translation by one nftables table, which is replaced atomically."""

    netns: str | None

    def apply(self, nat: Nat) -> None:
        """Apply exactly this translation."""
        text = nat_nft.ruleset(nat)
        _apply(self.netns, nat, self._leads(), lambda: self._write(text))

    def clear(self) -> None:
        """Remove all translation, including addresses."""
        _clear(self.netns, lambda: self._write(nat_nft.CLEARED))

    def forget(self) -> None:
        """Remove only the rules; the other implementation takes over the addresses."""
        self._write(nat_nft.CLEARED)

    def _write(self, text: str) -> None:
        commands.run(self.netns, ("nft", "-f", "-"), text=text)

    def _leads(self) -> Leads:
        try:
            said = commands.run(self.netns, ("nft", "-j", "list", "map", nat_nft.FAMILY, nat_nft.TABLE, "fip_in"))
        except NetworkError:  # the table does not exist yet
            return {}
        pairs = [pair for part in json.loads(said)["nftables"] for pair in part.get("map", {}).get("elem", ())]
        return {IPv4Address(floating): IPv4Address(fixed) for floating, fixed in pairs}


@dataclass(frozen=True, slots=True)
class IptablesNat:
    """Translation by chains of iptables beside those of other programs."""

    netns: str | None

    def apply(self, nat: Nat) -> None:
        """Apply exactly this translation."""
        wanted = nat_iptables.tables(nat)
        saved = commands.run(self.netns, ("iptables-save", "-t", "nat"))
        leads = {IPv4Address(floating): IPv4Address(fixed) for floating, fixed in _LEADS.findall(saved)}
        _apply(self.netns, nat, leads, lambda: self._write(wanted))

    def clear(self) -> None:
        """Remove all translation, including addresses."""
        _clear(self.netns, lambda: self._write(nat_iptables.none()))

    def forget(self) -> None:
        """Remove only the rules; the other implementation takes over the addresses."""
        if any(self._has_chains(program) for program in ("iptables", "ip6tables")):
            self._write(nat_iptables.none())

    def _has_chains(self, program: str) -> bool:
        try:
            return _CHAINS in self._saved(program)
        except NetworkError:  # iptables that cannot run now never ran here
            return False

    def _saved(self, program: str) -> str:
        return commands.run(self.netns, (f"{program}-save",))

    def _write(self, wanted: nat_iptables.Tables) -> None:
        for program, tables in (("iptables", wanted.v4), ("ip6tables", wanted.v6)):
            self._restore(program, tables)

    def _restore(self, program: str, tables: Mapping[str, iptables.Table]) -> None:
        for left in reversed(range(TRIES)):
            try:
                text = iptables.apply(self._saved(program), tables)
                commands.run(self.netns, (f"{program}-restore",), text=text)
            except NetworkError:
                if not left:
                    raise
            else:
                return


def _apply(namespace: str | None, nat: Nat, before: Leads, write: Callable[[], None]) -> None:
    leads = {Held(forward.floating, forward.interface): forward.fixed for forward in nat.forwards}
    metadata = {Held(METADATA, "lo", "link")} if metadata_target(nat) is not None else set()
    _prepare(namespace)
    there = floating_addresses.addresses(namespace)
    kept = (there.keys() & metadata) | {
        one for one in there.keys() & leads.keys() if before.get(one.address) == leads[one]
    }
    gone = {one for one, ours in there.items() if ours} - kept
    fresh = (leads.keys() | metadata) - kept
    floating_addresses.take(namespace, gone)
    write()
    floating_addresses.cut(namespace, {one.address for one in gone | fresh} - {METADATA})
    floating_addresses.add_addresses(namespace, fresh - (there.keys() - gone))


def _clear(namespace: str | None, write: Callable[[], None]) -> None:
    gone = {one for one, ours in floating_addresses.addresses(namespace).items() if ours}
    floating_addresses.take(namespace, gone)
    write()
    floating_addresses.cut(namespace, {one.address for one in gone} - {METADATA})


def _prepare(namespace: str | None) -> None:
    """Enable forwarding in this namespace; bridged traffic is not translated."""

    def work() -> None:
        netlink.sysctl("ipv4/ip_forward", 1)
        for key in _UNFILTERED:
            netlink.sysctl(key, 0)

    try:
        netns.inside(namespace, work)
    except OSError as error:
        raise NetworkError(f"forwarding cannot be enabled on this host: {error}") from error
