"""The hosts that ordinary boots use: registered ones of the multi-tenant pool, and all that nobody registered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from climate.cloud import CloudError, CloudHost, CloudServer
from climate.context import Climate
from climate.domain.policy import Caller, require
from climate.service.transaction import work
from climate.store.hosts import pools


@dataclass(frozen=True, slots=True)
class Stranger:
    """A host that nobody registered.  `servers` is None where nobody asked, or the cloud does not answer."""

    host: CloudHost
    servers: Sequence[CloudServer] | None = None


def unregistered(climate: Climate) -> Sequence[CloudHost] | None:
    """The hosts of the cloud that ordinary boots use and nobody registered; None where the cloud does not answer."""
    try:
        found = climate.cloud.ordinary_hosts()
    except CloudError:
        return None
    names = {host.name for host in found}
    known = work(climate, lambda conn, patient: pools.numbers_of(conn, names)) if names else {}
    return [host for host in found if host.name not in known]


def strangers(climate: Climate, caller: Caller, *, servers: bool) -> list[Stranger] | None:
    """The same as admins see them; with `servers`, those on each of them."""
    require(caller, "pools:get")
    found = unregistered(climate)
    if found is None:
        return None
    return [Stranger(host, servers_on(climate, host.name) if servers else None) for host in found]


def server_counts(climate: Climate) -> Mapping[str, int]:
    """How many servers are on each host that ordinary boots use, by name; nothing where the cloud does not answer."""
    try:
        return {host.name: host.servers for host in climate.cloud.ordinary_hosts()}
    except CloudError:
        return {}


def servers_on(climate: Climate, name: str) -> Sequence[CloudServer] | None:
    """The servers on a host; None where the cloud does not answer."""
    try:
        return climate.cloud.servers_on(name)
    except CloudError:
        return None
