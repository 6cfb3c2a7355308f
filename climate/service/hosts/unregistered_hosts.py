"""Hosts for ordinary servers: registered ones of the multi-tenant pool, and all unregistered ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from climate.cloud import CloudError, CloudHost, CloudServer
from climate.context import Climate
from climate.domain.policy import Caller, require
from climate.service.transaction import run
from climate.store.hosts import pools


@dataclass(frozen=True, slots=True)
class UnregisteredHost:
    """Unregistered host. `servers` is None if not requested, or if the cloud does not answer."""

    host: CloudHost
    servers: Sequence[CloudServer] | None = None


def unregistered(climate: Climate) -> Sequence[CloudHost] | None:
    """Return the unregistered hosts of the cloud for ordinary servers; None if the cloud does not answer."""
    try:
        result = climate.cloud.ordinary_hosts()
    except CloudError:
        return None
    names = {host.name for host in result}
    known = run(climate, pools.numbers_of, names) if names else {}
    return [host for host in result if host.name not in known]


def list_unregistered(climate: Climate, caller: Caller, *, servers: bool) -> list[UnregisteredHost] | None:
    """Return the unregistered hosts for admins; with `servers`, those on each of them."""
    require(caller, "pools:get")
    result = unregistered(climate)
    if result is None:
        return None
    return [UnregisteredHost(host, servers_on(climate, host.name) if servers else None) for host in result]


def server_counts(climate: Climate) -> Mapping[str, int]:
    """Return the number of servers on each host for ordinary servers, by name; empty if the cloud does not answer."""
    try:
        return {host.name: host.servers for host in climate.cloud.ordinary_hosts()}
    except CloudError:
        return {}


def servers_on(climate: Climate, name: str) -> Sequence[CloudServer] | None:
    """Return the servers on a host; None if the cloud does not answer."""
    try:
        return climate.cloud.servers_on(name)
    except CloudError:
        return None
