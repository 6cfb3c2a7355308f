"""API side of the allocation queue: requests addresses from network hosts, and releases them if a boot fails.

Addresses are requested before the transaction that records them, so no lock is held while a host answers.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from uuid import uuid4

import structlog
from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import ComputeError, MacsCollide, NetworkUnavailable, NoMoreAddresses
from climate.compute.network import mac_addresses
from climate.compute.network.allocation.allocator import ALLOCATE, CANCEL, Allocation, Interface
from climate.compute.network.allocation.grants import AddressRequest, Granted
from climate.compute.network.allocation.messages import Answer, allocation_body
from climate.compute.network.allocation.queue import AllocationQueue, Request
from climate.compute.network.models import Network
from climate.compute.network.network_options import MAC_ATTEMPTS
from climate.compute.store.db_errors import DATABASE_ERRORS
from climate.compute.store.networks import allocator_messages, granted_fixed_ips, network_hosts

log = structlog.get_logger(__name__)


def prepare(conn: Connection, compute: Compute, request: AddressRequest) -> list[tuple[Network, Allocation]]:
    """Return the requests to send. Raise NetworkUnavailable if the host of a network is down, MacsCollide."""
    now, down = compute.now(conn), compute.network.down_seconds
    up = {row["host"] for row in network_hosts.listed(conn, now, down) if row["up"]}
    for network in request.networks:
        if network.host not in up:
            log.warning("no addresses: a network host is down", network=network.id, host=network.host)
            raise NetworkUnavailable(f"No network host answers for network {network.id} now: try again later.")
    fresh = iter(_macs(conn, len(request.networks) * len(request.server_ids)))
    return [(network, _allocation(request, network, lambda: next(fresh))) for network in request.networks]


def _allocation(request: AddressRequest, network: Network, fresh: mac_addresses.Choose) -> Allocation:
    known = request.macs.get(network.id)
    exact = request.addresses.get(network.id)
    interfaces = tuple(Interface(server_id, known or fresh(), exact) for server_id in request.server_ids)
    return Allocation(str(uuid4()), network.id, str(network.cidr), request.project_id, interfaces, request.vpn)


def _macs(conn: Connection, count: int) -> list[str]:
    """MACs that no interface has, or will have as far as is known."""
    for _ in range(MAC_ATTEMPTS):
        chosen = {mac_addresses.choose() for _ in range(count)}
        if len(chosen) == count and not granted_fixed_ips.macs_in_use(conn, list(chosen)):
            return list(chosen)
    raise MacsCollide(f"{MAC_ATTEMPTS} MACs in a row were another interface's")


def request_addresses(
    compute: Compute, queue: AllocationQueue, prepared: Sequence[tuple[Network, Allocation]], method: str = ALLOCATE
) -> list[Granted]:
    """Request addresses from the hosts of all networks in parallel.

    Raise NetworkUnavailable if an answer is late, or the refusal of a host: NoMoreAddresses, BadRequest, Conflict,
    NotFound. On any error, everything that may have been granted is released.
    """
    requests = [Request(network.host or "", method, asked) for network, asked in prepared]
    try:
        answers = queue.call(requests, compute.network.call_seconds)
        return [_granted(network, asked, answers.get(asked.id)) for network, asked in prepared]
    except ComputeError as refusal:
        cancel(compute, [asked for _, asked in prepared])
        if isinstance(refusal, NoMoreAddresses):
            # Release surplus addresses now: fewer servers are created than this network had addresses for.
            queue.call([replace(one, method=CANCEL) for one in requests], compute.network.call_seconds)
            raise NoMoreAddresses(str(refusal), found=_found(answers.values())) from None
        raise


def _granted(network: Network, allocation: Allocation, answer: Answer | None) -> Granted:
    if answer is None:
        log.warning("no addresses: a network host did not answer in time", network=network.id, host=network.host)
        raise NetworkUnavailable(f"The network host of network {network.id} did not answer in time: try again later.")
    if isinstance(answer, ComputeError):
        raise answer
    return Granted(allocation, network, answer)


def _found(answers: Iterable[Answer]) -> int:
    """Return the number of servers for which each network granted an address."""
    return min(len(answer) if isinstance(answer, Mapping) else int(getattr(answer, "found", 0)) for answer in answers)


def cancel(compute: Compute, allocations: Sequence[Allocation], keep: AbstractSet[str] = frozenset()) -> None:
    """Release the addresses that these requests were granted, except those of the servers to keep.

    The release is recorded in the database and delivered later. If recording fails, the grant expires.
    """
    left = [
        replace(allocation, interfaces=tuple(each for each in allocation.interfaces if each.server_id not in keep))
        for allocation in allocations
    ]
    try:
        with compute.engine.begin() as conn:
            allocator_messages.write(
                conn, [(one.network_id, CANCEL, allocation_body(one)) for one in left if one.interfaces]
            )
    except DATABASE_ERRORS as error:
        log.warning("cancellation of a grant failed: it expires by itself", error=type(error).__name__)
