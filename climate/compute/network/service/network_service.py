"""The network service: brings its host to what the database says of the networks that it serves.

It may be stopped and started at any time: what runs on the host is found, and goes on.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from ipaddress import IPv4Address
from typing import TypeVar

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import NetworkError
from climate.compute.network import fixed_ips as fixed
from climate.compute.network import managers
from climate.compute.network.allocation.allocator import GRANT_SECONDS
from climate.compute.network.driver import Entry, Forward, Nat, NetworkDriver, Served
from climate.compute.network.models import Network
from climate.compute.network.service import claiming
from climate.compute.network.service.hostnames import hostname
from climate.compute.store.networks import fixed_ips as addresses
from climate.compute.store.networks import floating_ips as floating_rows
from climate.compute.store.networks import network_hosts
from climate.compute.store.networks import networks as rows
from climate.connections import reading

log = structlog.get_logger(__name__)

T = TypeVar("T")

SERVED_BETWEEN_BEATS = 10
"""Networks that are seen to before a host is heard of again."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a host is to do, as the database says it."""

    networks: Sequence[Network]
    entries: Mapping[str, Sequence[Entry]]
    floating: Sequence[tuple[str, str, str | None]]


def tend(compute: Compute, *, thorough: bool = False) -> None:
    """One beat: be heard of, claim a network, write down what DHCP clients did, and serve what has changed.

    One process of a host does so at a time, which is for the caller to see to.
    `thorough`: look at the whole host though nothing is known to have changed; otherwise a network that is served as
    it should be costs no more than a glance, however many there are.
    """
    driver = compute.wires.on(compute.network_netns)
    claiming.beat(compute)
    claiming.claim(compute)
    _note(compute, driver)
    with compute.engine.begin() as conn:
        calls = network_hosts.calls(conn, compute.network_host)
        timed_out = _time_out(compute, conn)
    if not (thorough or calls or timed_out):
        return
    trouble = _serve(compute, driver, thorough=thorough)
    if trouble:
        log.error("the networks of this host are not as they should be", host=compute.network_host, reason=trouble)
    # Who is called and fails is called again, and so is who dies before this.
    with compute.engine.begin() as conn:
        if trouble and not calls:
            network_hosts.call(conn, [compute.network_host])
        elif not trouble:
            network_hosts.answer(conn, calls)


def _note(compute: Compute, driver: NetworkDriver) -> None:
    """Write down what DHCP clients did; it is told of again until it is forgotten."""
    happened = _found(driver.happened, "what DHCP clients did is not known", compute)
    if not happened:
        return
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        for one in happened:
            fixed.note(conn, one, now)
    _found(partial(driver.forget, [one.key for one in happened]), "what DHCP clients did is told of again", compute)


def _found(ask: Callable[[], T], trouble: str, compute: Compute) -> T | None:
    try:
        return ask()
    except NetworkError as error:
        log.error(trouble, host=compute.network_host, reason=str(error))
        return None


def _time_out(compute: Compute, conn: Connection) -> bool:
    """Free what has waited for too long (cloud.md D.6); whether there was any."""
    waited = compute.network.timeout_seconds
    stale = addresses.time_out(conn, compute.network_host, compute.now(conn), waited, GRANT_SECONDS)
    if stale:
        log.info(f"Dissassociated {len(stale)} stale fixed ip(s)", host=compute.network_host)
    return bool(stale)


def _serve(compute: Compute, driver: NetworkDriver, *, thorough: bool) -> str:
    """Bring the host to what the database says; why that is not possible.  What fails keeps nothing else from it."""
    wanted = _wanted(compute)
    # Translation first: what it lets the host do, and keeps apart, no network is served without.
    reason = _tried("translation", partial(driver.translate, _translation(compute, wanted)))
    trouble = [reason] if reason else []
    served = {} if thorough else _unchanged(compute, driver, wanted)
    left = [network for network in wanted.networks if network.id not in served]
    for place, network in enumerate(left, 1):
        reason = _tried(f"network {network.label}", partial(_serve_one, compute, driver, network, wanted))
        if reason is None:
            served[network.id] = network
        else:
            trouble.append(reason)
        if place % SERVED_BETWEEN_BEATS == 0:  # a host with many networks is not dead while it sees to them
            claiming.beat(compute)
    steps: list[tuple[str, Callable[[], None]]] = [
        ("networks of others", partial(_leave, driver, {network.id for network in wanted.networks})),
    ]
    if compute.network.force_release:
        # Only where DHCP knows by now who is gone: an address is not free while it may still be handed out.
        steps.append(("release of addresses", partial(_release, compute, driver, served)))
    trouble += [reason for what, step in steps if (reason := _tried(what, step))]
    return "; ".join(trouble)


def _tried(what: str, step: Callable[[], None]) -> str | None:
    try:
        step()
    except NetworkError as error:
        return f"{what}: {error}"
    return None


def _leave(driver: NetworkDriver, keep: Collection[str]) -> None:
    """Serve none but these."""
    lost = sorted(driver.standing().served.difference(keep))
    trouble = [reason for one in lost if (reason := _tried(one, partial(driver.unserve, one)))]
    if trouble:
        raise NetworkError("; ".join(trouble))


def _wanted(compute: Compute) -> Wanted:
    host = compute.network_host
    with reading(compute.engine) as conn:
        own = rows.own(conn, host)
        found = addresses.entries(conn, host)
        floating = floating_rows.on_host(conn, host)
    return Wanted(own, {network_id: _named(entries) for network_id, entries in found.items()}, floating)


def _named(found: Sequence[tuple[str, str, Entry]]) -> list[Entry]:
    """The entries with the names that their servers have in this network: each only once."""
    taken: dict[str, str] = {}
    named = []
    for server_id, name, entry in found:
        plain = hostname(name, server_id)
        if taken.setdefault(plain, server_id) != server_id:
            plain = hostname(name, server_id, taken=True)
        named.append(replace(entry, hostname=plain))
    return named


def _served(compute: Compute, network: Network, wanted: Wanted) -> Served | None:
    return managers.of(network).served(network, compute.network, wanted.entries.get(network.id, ()))


def _unchanged(compute: Compute, driver: NetworkDriver, wanted: Wanted) -> dict[str, Network]:
    """The networks that are served as they should be."""
    asked = [made for network in wanted.networks if (made := _served(compute, network, wanted)) is not None]
    found = _found(partial(driver.unchanged, asked), "all networks of this host are looked at", compute)
    return {network.id: network for network in wanted.networks if network.id in (found or ())}


def _serve_one(compute: Compute, driver: NetworkDriver, network: Network, wanted: Wanted) -> None:
    served = _served(compute, network, wanted)
    if served is None:
        return
    link_local = driver.serve(served)
    if link_local is not None and link_local != network.gateway_v6:
        with compute.engine.begin() as conn:
            rows.change(conn, network.id, json.dumps({"gateway_v6": str(link_local)}))


def _translation(compute: Compute, wanted: Wanted) -> Nat:
    options = compute.network
    forwards = tuple(
        Forward(IPv4Address(floating), IPv4Address(to), interface or options.public_interface or "")
        for floating, to, interface in wanted.floating
    )
    nat = Nat(
        fixed_range=options.fixed_range,
        source=options.source,
        interface=options.public_interface,
        kept=options.kept,
        metadata=options.metadata,
        forwards=tuple(forward for forward in forwards if forward.interface),
    )
    for network in wanted.networks:
        nat = managers.of(network).translated(network, options, nat)
    return replace(nat, between=_between(compute, wanted.networks, nat))


def _between(compute: Compute, networks: Sequence[Network], nat: Nat) -> tuple[frozenset[str], ...]:
    """The bridges between which the host routes: those of one project, or all when the operator asks for it."""
    if compute.network.route_between_projects:
        return (frozenset(nat.bridges),)
    by_project: dict[str | None, set[str]] = {}
    for network in networks:
        bridge = managers.of(network).link(network, compute.network, own=True).bridge
        if bridge in nat.bridges:
            by_project.setdefault(network.project_id, set()).add(bridge)
    return tuple(frozenset(group) for _, group in sorted(by_project.items(), key=str) if len(group) > 1)


def _release(compute: Compute, driver: NetworkDriver, networks: Mapping[str, Network]) -> None:
    """Have DHCP forget the addresses of servers that are gone, and free those that no client held."""
    with reading(compute.engine) as conn:
        waiting = [one for one in addresses.waiting(conn, compute.network_host) if one.network_id in networks]
        seen = compute.now(conn)
    trouble: dict[tuple[str, IPv4Address], str] = {}
    for one in waiting:
        network = networks[one.network_id]
        link = managers.of(network).link(network, compute.network, own=True)
        release = partial(driver.release, link, Entry(one.mac, one.address, "", ""))
        if reason := _tried(str(one.address), release):
            trouble[one.network_id, one.address] = reason
    if not waiting:
        return
    _note(compute, driver)
    by_network: dict[str, list[str]] = {}
    for one in waiting:
        if not one.leased and (one.network_id, one.address) not in trouble:
            by_network.setdefault(one.network_id, []).append(str(one.address))
    _free(compute, by_network, seen)
    if trouble:
        raise NetworkError("; ".join(trouble.values()))


def _free(compute: Compute, by_network: Mapping[str, Sequence[str]], seen: datetime) -> None:
    with compute.engine.begin() as conn:
        now = max(compute.now(conn), seen + timedelta(microseconds=1))
        for network_id, free in by_network.items():
            addresses.free(conn, network_id, free, now, seen)
