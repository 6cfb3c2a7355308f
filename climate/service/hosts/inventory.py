"""Inventory of hosts: register, update, delete, and list their allocations."""

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import partial

import structlog
from sqlalchemy import Connection

from climate.cloud import DRAINING, CloudError, CloudHost, Fenced, NotYet
from climate.context import Climate
from climate.domain.errors import Busy, Conflict, Forbidden, InvalidInput, NotFound, Unavailable
from climate.domain.facts import HostMoved, HostPowerCleared
from climate.domain.hosts import extra_spec_requirements, folded_host, requirements
from climate.domain.hosts.pools import HostPlace, Pool
from climate.domain.policy import Caller, require
from climate.service.hosts import move_checks
from climate.service.leases import shortages
from climate.service.transaction import run
from climate.store import idempotency
from climate.store.allocation import hosts as availability
from climate.store.allocation.hosts import Allocated
from climate.store.hosts import hosts, maintenance, pool_membership, power
from climate.store.hosts.hosts import Host, Property
from climate.store.hosts.maintenance import WindowFilter, WindowState
from climate.store.idempotency import Key
from climate.store.journal import journal
from climate.store.leases import event_claims
from climate.whole_numbers import whole_number

log = structlog.get_logger(__name__)

LONGEST_NAME = 64

TO_BE_KEPT = "registered with servers on it"

UNSTORED = ("servers", "ids", "capabilities")
"""Properties of a host of the cloud without a column."""


@dataclass(frozen=True, slots=True)
class RegistrationOptions:
    """Options of a registration."""

    key: Key | None = None
    """Idempotency key: the same key again returns the same registration."""
    drain: bool = False
    """Set if the host may have servers."""
    dry_run: bool = False


def register(
    climate: Climate,
    caller: Caller,
    name: str,
    extra: Mapping[str, str],
    options: RegistrationOptions = RegistrationOptions(),
) -> Host:
    """Register a host of the cloud and add it to the reservation pool.

    With `how.drain`, a host with servers is registered too: it takes no new servers, and joins the reservation
    pool when the last one is gone. `name` may also be the hypervisor id or the UUID of the host. Raises NotFound
    for an unknown host. Raises Conflict if several hosts match, the host has servers, or it is registered
    already. The host gets the traits and resource classes that the cloud knows, unless `extra` overrides them.
    """
    require(caller, "oshosts:post")
    check_names(extra)
    host = _found(climate, name)
    made = run(climate, _insert, climate, caller, host, extra, options, keep=not options.dry_run)
    if not options.dry_run:
        _enrol(climate, caller, made, options.key)
    return made


def _insert(
    conn: Connection,
    climate: Climate,
    caller: Caller,
    host: CloudHost,
    extra: Mapping[str, str],
    options: RegistrationOptions,
) -> Host:
    if options.key and (known := idempotency.earlier(conn, caller, options.key)):
        return hosts.get(conn, int(known))
    if host.servers and not options.drain:
        raise Conflict(
            f"Servers [{host.servers}] found for host {host.name}: only an empty host can be registered,"
            " or with drain=true one that is emptied first"
        )
    now = climate.now(conn)
    made = _recorded(conn, caller, host, {**host.capabilities, **extra}, now)
    if options.key:
        idempotency.remember(conn, caller, options.key, str(made.id), now)
    return made


def _found(climate: Climate, name: str) -> CloudHost:
    """Return the only host of the cloud that matches."""
    with shortages.of_the_cloud():
        result = climate.cloud.find_hosts(name)
    if not result:
        raise NotFound(f"Host '{name}' not found!")
    if len(result) > 1:
        raise Conflict(f"Multiple hosts found for pattern '{name}'")
    return result[0]


def _recorded(conn: Connection, caller: Caller, host: CloudHost, extra: Mapping[str, str], now: datetime) -> Host:
    """Record the new host; one with servers belongs to the multi-tenant pool until it is drained."""
    pool = Pool.MULTI_TENANT if host.servers else Pool.RESERVATION
    columns = {**_columns(host), "pool_token": event_claims.tokens(conn, 1)[0]}
    made = hosts.add(conn, caller, columns, extra, now, pool)
    if host.servers:
        fact = HostMoved(now, Pool.DRAINING, TO_BE_KEPT, event_claims.tokens(conn, 1)[0])
        pool_membership.record(conn, caller, [(pool_membership.get(conn, made.id), [fact])])
    return made


def _columns(host: CloudHost) -> dict[str, object]:
    """Return the cloud's description with the column names of the engine."""
    described = asdict(host)
    return {"hypervisor_hostname": described.pop("name"), **{k: v for k, v in described.items() if k not in UNSTORED}}


def _enrol(climate: Climate, caller: Caller, made: Host, key: Key | None) -> None:
    """Add the host to its pool in the cloud; if that refuses, remove the host and the key from the database.

    A host that was allocated meanwhile is kept, and the reconciliation goes on asking the cloud.
    """
    try:
        with shortages.of_the_cloud():
            _add_to_pool(climate, made)
    except (Conflict, Unavailable):
        run(climate, _unregister, climate, caller, made, key)
        raise


def _unregister(conn: Connection, climate: Climate, caller: Caller, made: Host, key: Key | None) -> None:
    hosts.get(conn, made.id, lock=True)
    if hosts.promised(conn, made.id):
        return
    hosts.remove(conn, caller, made.id, climate.now(conn))
    if key:
        idempotency.forget(conn, caller, key)


def _add_to_pool(climate: Climate, made: Host) -> None:
    """Add the host to its pool. After a repeated request it may be in any pool, and the rounds process it there."""
    place = run(climate, pool_membership.get, made.id)
    with suppress(Fenced):
        if place.pool is Pool.RESERVATION:
            climate.cloud.enrol(made.name, place.token)
        elif place.pool is Pool.DRAINING:
            climate.cloud.place(made.name, DRAINING, place.token)


def get(climate: Climate, caller: Caller, host_id: str, at: datetime | None = None) -> Host:
    """Return a host; with `at`, its extra capabilities are those of that time.

    Raises NotFound before it was registered.
    """
    require(caller, "oshosts:get")
    return run(climate, _read, host_id, at)


def _read(conn: Connection, host_id: str, at: datetime | None) -> Host:
    host = hosts.get(conn, number(host_id))
    if at is None:
        return host
    known = journal.until(journal.read(conn, pool_membership.get(conn, host.id).stream), at)
    if not known:
        raise NotFound(f"Object with {{'host_id': '{host_id}'}} not found")
    return replace(host, extra=folded_host.fold(journal.of_host(known)).extra)


def listed(climate: Climate, caller: Caller, marker: str | None = None, limit: int | None = None) -> list[Host]:
    """Return all hosts in one statement, in the order of their numbers."""
    require(caller, "oshosts:get")
    after = None if marker is None else marker_number(marker)
    return run(climate, hosts.listed, after, limit)


def names(climate: Climate, caller: Caller, numbers: Collection[int]) -> dict[int, str]:
    """Return the names of hosts by their numbers, also of removed ones, in one statement."""
    require(caller, "oshosts:get")
    return {number: host.name for number, host in run(climate, hosts.by_number, numbers).items()} if numbers else {}


def update(
    climate: Climate, caller: Caller, host_id: str, extra: Mapping[str, str | None], *, dry_run: bool = False
) -> Host:
    """Set capabilities, or remove those that are None; raise Conflict if a lease on the host relies on one of them."""
    require(caller, "oshosts:put")
    if not extra:
        raise InvalidInput("No data to update")
    check_names(extra)
    return run(climate, _write_changes, climate, caller, host_id, extra, keep=not dry_run)


def _write_changes(
    conn: Connection, climate: Climate, caller: Caller, host_id: str, extra: Mapping[str, str | None]
) -> Host:
    host = hosts.get(conn, number(host_id), lock=True)
    changed = {name for name, value in extra.items() if host.extra.get(name) != value}
    relied = _relied_on(conn, host.id)
    if changed & relied:
        names = ", ".join(sorted(changed & relied))
        raise Conflict(f"Can't add extracapabilities [{names}] to Host {host.id}: leases on it rely on them")
    return hosts.change(conn, caller, host.id, extra, climate.now(conn))


def _relied_on(conn: Connection, number: int) -> frozenset[str]:
    """Return the names of the capabilities for which reservations were given this host."""
    asked = (requirements.keys(requirements.parse(text)) for text in hosts.relied_on(conn, number))
    flavors = (json.loads(text)["extra_specs"] for text in hosts.flavors_on(conn, number))
    return frozenset().union(*asked, *(extra_spec_requirements.capabilities(specs) for specs in flavors))


def remove(climate: Climate, caller: Caller, host_id: str, *, dry_run: bool = False) -> None:
    """Unregister a host in any pool, and remove its power settings.

    Raises Conflict with the leases that hold it, now or later, or if it is off and has not failed.
    """
    require(caller, "oshosts:delete")
    place, token = run(climate, _delete, climate, caller, host_id, keep=not dry_run)
    if not dry_run:
        _let_go(climate, place, token)


def _delete(conn: Connection, climate: Climate, caller: Caller, host_id: str) -> tuple[HostPlace, int]:
    known = maintenance.lock_open(conn, number(host_id))
    host, now = hosts.get(conn, number(host_id), lock=True), climate.now(conn)
    promised = hosts.promised(conn, host.id)
    if promised:
        named = ", ".join(map(str, promised[:5])) + (" and others" if len(promised) > 5 else "")
        raise Conflict(f"Can't delete host {host.id}. The host is reserved: by lease {named}")
    place, token = pool_membership.get(conn, host.id), event_claims.tokens(conn, 1)[0]
    if place.pool is not Pool.FAILED:
        move_checks.refuse_asleep(conn, [place])
    if power.clear(conn, host.id):
        pool_membership.record(conn, caller, [(place, [HostPowerCleared(now)])])
    hosts.remove(conn, caller, host.id, now)
    left = [one.id for one in maintenance.listed(conn, WindowFilter(host.id))]
    if not set(left) <= set(known):
        raise Busy(f"A maintenance window of host {host.id} is being planned; try again shortly")
    maintenance.close(conn, caller, left, WindowState.CANCELLED, now)
    return place, token


def _let_go(climate: Climate, place: HostPlace, token: int) -> None:
    """Remove the host from all pools of the cloud, with the servers that may be on it."""
    if place.pool is Pool.RESERVATION:
        _send_to_cloud(lambda name: climate.cloud.withdraw(name, token), place.name)
    elif place.pool is not Pool.MULTI_TENANT:
        _send_to_cloud(lambda name: climate.cloud.place(name, None, token), place.name)


def _send_to_cloud(verb: Callable[[str], None], name: str) -> None:
    """Send a request to the cloud; the reconciliation retries it if it fails."""
    try:
        verb(name)
    except (CloudError, NotYet, Fenced) as error:
        log.warning("aggregate of the reservation pool not updated", host=name, error=str(error))


def allocations(
    climate: Climate, caller: Caller, marker: str | None = None, limit: int | None = None
) -> list[tuple[int, list[Allocated]]]:
    """Return a page of all hosts with their present and future allocations."""
    require(caller, "oshosts:get_allocations")
    after = None if marker is None else marker_number(marker)
    return run(climate, _read_allocations, climate, limit, after)


def _read_allocations(
    conn: Connection, climate: Climate, limit: int | None, after: int | None
) -> list[tuple[int, list[Allocated]]]:
    by_host: dict[int, list[Allocated]] = {number: [] for number in hosts.in_calendar(conn, after, limit)}
    for held in availability.allocated(conn, climate.now(conn), by_host):
        by_host[held.host].append(held)
    return list(by_host.items())


def allocation(climate: Climate, caller: Caller, host_id: str) -> tuple[int, list[Allocated]]:
    require(caller, "oshosts:get_allocations")
    return run(climate, _read_allocation, climate, host_id)


def _read_allocation(conn: Connection, climate: Climate, host_id: str) -> tuple[int, list[Allocated]]:
    host = hosts.get(conn, number(host_id))
    return host.id, availability.allocated(conn, climate.now(conn), [host.id])


def properties(climate: Climate, caller: Caller, *, private: bool = False) -> list[Property]:
    """Return extra capabilities and their values; private ones only for admins who ask for all."""
    require(caller, "oshosts:get_resource_properties")
    if private and not caller.is_admin:
        raise Forbidden("Only admins may list private properties")
    return run(climate, partial(hosts.property_list, private=private))


def set_private(climate: Climate, caller: Caller, name: str, private: bool) -> Property:
    require(caller, "oshosts:update_resource_properties")
    return run(climate, _set_private, climate, name, private)


def _set_private(conn: Connection, climate: Climate, name: str, private: bool) -> Property:
    return hosts.set_private(conn, name, private, climate.now(conn))


def number(host_id: str) -> int:
    """Parse a host's number from a request; raise NotFound unless it is a number."""
    result = whole_number(host_id)
    if result is None:
        raise NotFound(f"Object with {{'host_id': '{host_id[:80]}'}} not found")
    return result


def marker_number(marker: str) -> int:
    try:
        return number(marker)
    except NotFound:
        raise InvalidInput(f"marker {marker} is not the id of a host") from None


def check_names(extra: Mapping[str, object]) -> None:
    """Raise InvalidInput unless a name has up to 64 letters, digits and _ - : . and is not that of a column.

    Also raises it for authorized projects without a project.
    """
    named = extra.get(hosts.AUTHORIZED_PROJECTS)
    if named is not None and not str(named).replace(",", " ").split():
        raise InvalidInput(f"{hosts.AUTHORIZED_PROJECTS} must name ids of projects, by commas, not {named!r}")
    for name in extra:
        _check_name(name)


def _check_name(name: str) -> None:
    if len(name) > LONGEST_NAME:
        raise InvalidInput("Extra capability key too long")
    if not name or not all(c.isascii() and (c.isalnum() or c in "_-:.") for c in name):
        raise InvalidInput(f"Extra capability {name!r} may have letters, digits and _ - : . only")
    if name in hosts.COLUMNS or name in ("created_at", "updated_at", "name", "disabled"):
        raise InvalidInput(f"Extra capability {name} is the name of something that every host has")
