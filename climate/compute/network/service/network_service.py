"""Network service: reconciles its host with the networks in the database.

It may be stopped and restarted at any time, because everything that runs on the host is found again.
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

from climate.compute import one_by_one
from climate.compute.context import Compute
from climate.compute.errors import NetworkError
from climate.compute.models.hostnames import hostname
from climate.compute.network import fixed_ips, managers
from climate.compute.network.allocation.allocator import GRANT_SECONDS
from climate.compute.network.driver import DhcpEvent, Entry, Forward, Nat, NetworkDriver, NetworkServices
from climate.compute.network.models import Network
from climate.compute.network.service import claiming
from climate.compute.store import db_errors
from climate.compute.store.networks import fixed_ips as addresses
from climate.compute.store.networks import floating_ips as floating_rows
from climate.compute.store.networks import network_hosts
from climate.compute.store.networks import networks as rows
from climate.database.connections import alone, reading

log = structlog.get_logger(__name__)

T = TypeVar("T")

WORK = "network service"
"""Name of the work in the log."""

SERVED_BETWEEN_BEATS = 10
"""Number of networks served between two heartbeats."""


@dataclass(frozen=True, slots=True)
class DesiredState:
    """Wanted state of a host, from the database."""

    networks: Sequence[Network]
    entries: Mapping[str, Sequence[Entry]]
    floating: Sequence[tuple[str, str, str | None]]


def run_round(compute: Compute, *, thorough: bool = False) -> None:
    """Run one beat: send a heartbeat, claim a network, record DHCP events, and serve changed networks.

    The caller must ensure that only one process of a host does this at a time. `thorough`: check the whole host even
    without known changes. A correctly served network then costs one cheap check. A beat without work is one statement.
    """
    driver = compute.network_drivers.on(compute.network_netns)
    work = claiming.beat_and_look(compute)
    claimed = work.unserved and _is_claimed(compute)
    one_by_one.attempt(WORK, "DHCP events", partial(_note, compute, driver))
    if not (thorough or claimed or work.called or work.overdue):
        return
    with alone(compute.engine) as conn:
        calls = network_hosts.calls(conn, compute.network_host)
        timed_out = _time_out(compute, conn)
    if not (thorough or calls or timed_out):
        return
    trouble = _serve(compute, driver, thorough=thorough)
    if trouble:
        log.error("networks of this host are not reconciled", host=compute.network_host, reason=trouble)
    # The call stays recorded after a failure or a crash, and is repeated.
    with compute.engine.begin() as conn:
        if not trouble:
            network_hosts.answer(conn, calls)
        elif not calls:
            network_hosts.call(conn, [compute.network_host])


def _is_claimed(compute: Compute) -> bool:
    """Claim a network if there is one; return whether one was claimed."""
    claimed: list[Network | None] = []
    one_by_one.attempt(WORK, "claim of a network", lambda: claimed.append(claiming.claim(compute)))
    return any(claimed)


def _note(compute: Compute, driver: NetworkDriver) -> None:
    """Record events of DHCP clients; the driver repeats them until they are acknowledged."""
    happened = _found(driver.happened, "DHCP events cannot be read", compute)
    if not happened:
        return
    _found(
        partial(driver.forget, _noted(compute, happened)),
        "DHCP events not acknowledged: they will be repeated",
        compute,
    )


def _noted(compute: Compute, events: Sequence[DhcpEvent]) -> list[str]:
    """Record events together, or one by one if one of them fails; return the keys of those to acknowledge."""
    failed: list[DhcpEvent] = []
    try:
        _note_all(compute, events)
    except Exception as error:
        if db_errors.unusable(error):
            raise
        log.warning("DHCP events recorded one by one", host=compute.network_host, reason=type(error).__name__)
        failed = one_by_one.each("record of DHCP events", events, partial(_note_one, compute), lambda one: one.key)
    return [event.key for event in events if event not in failed]


def _note_all(compute: Compute, events: Sequence[DhcpEvent]) -> None:
    with compute.engine.begin() as conn:
        now = compute.now(conn)
        for event in events:
            fixed_ips.note(conn, event, now)


def _note_one(compute: Compute, event: DhcpEvent) -> None:
    """Record an event. A damaged one is logged with its content, and not repeated."""
    try:
        _note_all(compute, [event])
    except Exception as error:
        if not db_errors.is_invalid_value(error):
            raise
        log.error("DHCP event set aside: it is damaged", host=compute.network_host, said=repr(event)[:300])


def _found(ask: Callable[[], T], trouble: str, compute: Compute) -> T | None:
    found: list[T] = []

    def act() -> None:
        try:
            found.append(ask())
        except NetworkError as error:
            log.error(trouble, host=compute.network_host, reason=str(error))

    one_by_one.attempt(WORK, trouble, act)
    return found[0] if found else None


def _time_out(compute: Compute, conn: Connection) -> bool:
    """Release addresses whose wait for the DHCP lease expired; return whether there were any."""
    waited = compute.network.timeout_seconds
    stale = addresses.time_out(conn, compute.network_host, compute.now(conn), waited, GRANT_SECONDS)
    if stale:
        log.info(f"Dissassociated {len(stale)} stale fixed ip(s)", host=compute.network_host)
    return bool(stale)


def _serve(compute: Compute, driver: NetworkDriver, *, thorough: bool) -> str:
    """Reconcile the host with the database; return the first problem. A failure does not stop the other steps."""
    wanted = _desired_state(compute)
    # Translation comes first, because it separates the bridges of networks.
    reason = _tried("translation", lambda: driver.translate(_translation(compute, wanted)))
    trouble = [reason] if reason else []
    served = {} if thorough else _unchanged(compute, driver, wanted)
    left = [network for network in wanted.networks if network.id not in served]
    for index, network in enumerate(left, 1):
        reason = _tried(f"network {network.label}", partial(_serve_one, compute, driver, network, wanted))
        if reason is None:
            served[network.id] = network
        else:
            trouble.append(reason)
        if index % SERVED_BETWEEN_BEATS == 0:  # Heartbeats continue while a host with many networks serves them.
            claiming.beat(compute)
    steps: list[tuple[str, Callable[[], None]]] = [
        (
            "stopping of networks of other hosts",
            partial(_stop_others, driver, {network.id for network in wanted.networks}),
        ),
    ]
    if compute.network.force_release:
        # Only after DHCP was updated: an address is not free while DHCP may still assign it.
        steps.append(("release of addresses", partial(_release, compute, driver, served)))
    trouble += [reason for what, step in steps if (reason := _tried(what, step))]
    return "; ".join(trouble)


def _tried(what: str, step: Callable[[], None]) -> str | None:
    """Take a step; return None, or the reason of its failure. Raises errors of a database that is away."""
    reasons: list[str] = []

    def act() -> None:
        try:
            step()
        except NetworkError as error:
            reasons.append(str(error))

    unexpected = one_by_one.attempt(WORK, what, act)
    return next((f"{what}: {reason}" for reason in (*reasons, unexpected) if reason is not None), None)


def _stop_others(driver: NetworkDriver, keep: Collection[str]) -> None:
    """Stop serving all other networks."""
    lost = sorted(driver.standing().served.difference(keep))
    trouble = [reason for one in lost if (reason := _tried(one, partial(driver.unserve, one)))]
    if trouble:
        raise NetworkError("; ".join(trouble))


def _desired_state(compute: Compute) -> DesiredState:
    host = compute.network_host
    with reading(compute.engine) as conn:
        own = rows.own(conn, host)
        by_network = addresses.entries(conn, host)
        floating = floating_rows.on_host(conn, host)
    return DesiredState(own, {network_id: _named(entries) for network_id, entries in by_network.items()}, floating)


def _named(entries: Sequence[tuple[str, str, Entry]]) -> list[Entry]:
    """Return the entries with the DNS names of their servers, each unique in the network."""
    taken: dict[str, str] = {}
    named = []
    for server_id, name, entry in entries:
        plain = hostname(name, server_id)
        if taken.setdefault(plain, server_id) != server_id:
            plain = hostname(name, server_id, taken=True)
        named.append(replace(entry, hostname=plain))
    return named


def _served(compute: Compute, network: Network, wanted: DesiredState) -> NetworkServices | None:
    return managers.of(network).served(network, compute.network, wanted.entries.get(network.id, ()))


def _unchanged(compute: Compute, driver: NetworkDriver, wanted: DesiredState) -> dict[str, Network]:
    """Return the networks that are served correctly."""
    asked: list[NetworkServices] = []

    def add_request(network: Network) -> None:
        made = _served(compute, network, wanted)
        asked.extend([made] if made is not None else [])

    one_by_one.each(WORK, wanted.networks, add_request, lambda network: network.label)
    unchanged = _found(partial(driver.unchanged, asked), "checking all networks of this host", compute)
    return {network.id: network for network in wanted.networks if network.id in (unchanged or ())}


def _serve_one(compute: Compute, driver: NetworkDriver, network: Network, wanted: DesiredState) -> None:
    served = _served(compute, network, wanted)
    if served is None:
        return
    link_local = driver.serve(served)
    if link_local is not None and link_local != network.gateway_v6:
        with compute.engine.begin() as conn:
            rows.change(conn, network.id, json.dumps({"gateway_v6": str(link_local)}))


def _translation(compute: Compute, wanted: DesiredState) -> Nat:
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
    """Return the groups of bridges between which the host routes: those of one project, or all if configured."""
    if compute.network.route_between_projects:
        return (frozenset(nat.bridges),)
    by_project: dict[str | None, set[str]] = {}
    for network in networks:
        bridge = managers.of(network).link(network, compute.network, own=True).bridge
        if bridge in nat.bridges:
            by_project.setdefault(network.project_id, set()).add(bridge)
    return tuple(frozenset(group) for _, group in sorted(by_project.items(), key=str) if len(group) > 1)


def _release(compute: Compute, driver: NetworkDriver, networks: Mapping[str, Network]) -> None:
    """Release DHCP leases of deleted servers, and free addresses that no client holds."""
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
