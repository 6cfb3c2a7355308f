"""Host side of the allocation queue: answers requests, and delivers notifications to the allocator."""

from collections.abc import Callable, Mapping
from typing import Any

import structlog

from climate.compute.context import Compute
from climate.compute.errors import ComputeError, NetworkUnavailable
from climate.compute.network.allocation import allocator as port
from climate.compute.network.allocation.allocator import Allocation, InUse, NetworkAllocator, Release, Translation
from climate.compute.network.allocation.messages import WireError, allocation_of, answer_body
from climate.compute.store.networks import allocator_messages, granted_fixed_ips
from climate.compute.store.networks import networks as network_rows
from climate.compute.store.networks.allocator_messages import AllocatorMessage
from climate.database.connections import reading

log = structlog.get_logger(__name__)


def answer(allocator: NetworkAllocator, message: Any) -> dict[str, Any] | None:
    """Return the answer to a request message, or None if it cannot be read."""
    try:
        asked, method = allocation_of(message["allocation"]), message["method"]
        act = _methods(allocator)[method]
    except (WireError, TypeError, KeyError) as error:
        log.warning("request for addresses dropped: it cannot be read", error=str(error)[:200])
        return None
    log.debug("request for addresses received", method=method, network=asked.network_id, request=asked.id)
    try:
        return answer_body(asked, act(asked))
    except ComputeError as refusal:
        return answer_body(asked, refusal)
    except Exception:
        log.exception("an allocator failed", method=method, network=asked.network_id)
        return answer_body(asked, NetworkUnavailable())


def _methods(allocator: NetworkAllocator) -> Mapping[str, Callable[[Allocation], Mapping[str, str]]]:
    """Return the methods whose answer a caller waits for."""

    def cancel(asked: Allocation) -> Mapping[str, str]:
        allocator.cancel_allocation(asked)
        return {}

    return {
        port.ALLOCATE: allocator.allocate_for_instance,
        port.ADD: allocator.add_fixed_ip_to_instance,
        port.CANCEL: cancel,
    }


def deliver(compute: Compute, allocator: NetworkAllocator) -> None:
    """Deliver the notifications of this host's networks to an allocator, in the order of the changes.

    The caller must ensure that only one process of a host does this at a time. A failed notification is delivered
    again, before later ones of the same network.
    """
    with reading(compute.engine) as conn:
        result = allocator_messages.of_host(conn, compute.network_host)
    failed: set[str] = set()
    for message in result:
        if message.network_id not in failed and not _handed(allocator, message):
            failed.add(message.network_id)
        if message.network_id not in failed:
            with compute.engine.begin() as conn:
                allocator_messages.done(conn, message.id)


def reconcile(compute: Compute, allocator: NetworkAllocator) -> None:
    """Send an allocator the recorded addresses of this host's networks, so that it releases lost grants."""
    with reading(compute.engine) as conn:
        in_use = {
            one.id: granted_fixed_ips.recorded(conn, one.id) for one in network_rows.own(conn, compute.network_host)
        }
    for network_id, servers in in_use.items():
        try:
            allocator.reconcile(InUse(network_id, servers))
        except Exception:
            log.exception("an allocator failed", method="reconcile", network=network_id)


def _handed(allocator: NetworkAllocator, message: AllocatorMessage) -> bool:
    try:
        _hand(allocator, message)
    except Exception:
        log.exception(
            "allocator failed: the notification is retried", method=message.method, network=message.network_id
        )
        return False
    return True


def _hand(allocator: NetworkAllocator, message: AllocatorMessage) -> None:
    network_id, body = message.network_id, message.body
    if message.method == port.CANCEL:
        allocator.cancel_allocation(allocation_of(body))
    elif message.method == port.DEALLOCATE:
        allocator.deallocate_for_instance(_release(network_id, body))
    elif message.method == port.REMOVE:
        allocator.remove_fixed_ip_from_instance(_release(network_id, body))
    elif message.method == port.ASSOCIATE:
        allocator.associate_floating_ip(Translation(network_id, body["floating"], body["fixed"]))
    elif message.method == port.DISASSOCIATE:
        allocator.disassociate_floating_ip(Translation(network_id, body["floating"], body["fixed"]))


def _release(network_id: str, body: Mapping[str, Any]) -> Release:
    return Release(network_id, body["server_id"], tuple(body["addresses"]))
