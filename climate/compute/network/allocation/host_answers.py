"""Host side of the allocation queue: answers requests, and delivers notifications to the allocator."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import structlog

from climate.compute import one_by_one
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

    def cancel(allocation: Allocation) -> Mapping[str, str]:
        allocator.cancel_allocation(allocation)
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
        own = [one.id for one in network_rows.own(conn, compute.network_host)]

    def reconcile_one(network_id: str) -> None:
        with reading(compute.engine) as conn:
            servers = granted_fixed_ips.recorded(conn, network_id)
        allocator.reconcile(InUse(network_id, servers))

    one_by_one.each("reconciliation of an allocator", own, reconcile_one)


def _handed(allocator: NetworkAllocator, message: AllocatorMessage) -> bool:
    try:
        act = _call(allocator, message)
    except (WireError, KeyError, TypeError, AttributeError) as error:
        said = {"message": message.id, "method": message.method, "network": message.network_id}
        log.error("notification of an allocator set aside: it cannot be read", error=str(error)[:200], **said)
        return True
    try:
        act()
    except Exception:
        log.exception(
            "allocator failed: the notification is retried", method=message.method, network=message.network_id
        )
        return False
    return True


def _call(allocator: NetworkAllocator, message: AllocatorMessage) -> Callable[[], object]:
    """Return the call of an allocator that a message stands for. Raises errors for one that cannot be read."""
    network_id, body = message.network_id, message.body
    if message.method == port.CANCEL:
        return partial(allocator.cancel_allocation, allocation_of(body))
    if message.method == port.DEALLOCATE:
        return partial(allocator.deallocate_for_instance, _release(network_id, body))
    if message.method == port.REMOVE:
        return partial(allocator.remove_fixed_ip_from_instance, _release(network_id, body))
    translation = Translation(network_id, body["floating"], body["fixed"])
    if message.method == port.ASSOCIATE:
        return partial(allocator.associate_floating_ip, translation)
    if message.method == port.DISASSOCIATE:
        return partial(allocator.disassociate_floating_ip, translation)
    raise WireError(f"an allocator has no method {message.method[:40]}")


def _release(network_id: str, body: Mapping[str, Any]) -> Release:
    return Release(network_id, body["server_id"], tuple(body["addresses"]))
