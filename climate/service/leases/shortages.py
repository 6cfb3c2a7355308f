"""Refusals for too few hosts, addresses or storage: the text of the answer, with what is free and when it would fit."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from sqlalchemy import Connection

from climate.cloud import CloudError, Refused
from climate.context import Climate
from climate.domain.errors import (
    ClimateError,
    Conflict,
    NotEnoughAddresses,
    NotEnoughHosts,
    NotEnoughStorage,
    NotFound,
    PreconditionFailed,
    Unavailable,
)
from climate.domain.lease import Lease
from climate.service.leases import joint_shortages
from climate.service.leases.joint_allocation import Unmatchable
from climate.service.transaction import run
from climate.store.allocation import floating_ips, hosts, inventories, shared_capacity
from climate.store.allocation.hosts import HostRequest, Short, Shortage
from climate.store.allocation.shared_capacity import NotEnoughRoom

BARE = (Short, Unmatchable, NotEnoughRoom, floating_ips.Short, inventories.Short)
"""Shortages without an explanation."""


@contextmanager
def explained(climate: Climate) -> Iterator[None]:
    """Replace a bare shortage by one that says how many match, how many are free, and when it would fit.

    The explanation is read after the refused transaction has released its locks.
    """
    try:
        yield
    except BARE as bare:
        if isinstance(bare, Short) and bare.shortage is not None:  # nothing is left to read
            raise NotEnoughHosts(_message(bare.shortage, bare.wanted)) from None
        raise run(climate, explanation, bare) from None


def explanation(conn: Connection, error: ClimateError) -> ClimateError:
    """Return a bare shortage with what is free and when it would fit; other errors as they are."""
    match error:
        case Short():
            return NotEnoughHosts(_message(error.shortage or hosts.shortage(conn, error.wanted), error.wanted))
        case Unmatchable():
            return joint_shortages.explained(conn, error)
        case NotEnoughRoom():
            return NotEnoughHosts(_capacity_text(shared_capacity.shortage(conn, error.wanted), error.wanted))
        case floating_ips.Short():
            there, missing = floating_ips.shortage(conn, error.wanted)
            return NotEnoughAddresses(_addresses_text(there, missing, error.wanted))
        case inventories.Short():
            return NotEnoughStorage(_amounts_text(inventories.shortage(conn, error.wanted), error.wanted))
    return error


@contextmanager
def of_the_cloud() -> Iterator[None]:
    """Convert errors of the cloud for the requester: Conflict if permanent, Unavailable if temporary."""
    try:
        yield
    except Refused as error:
        raise Conflict(str(error)) from error
    except CloudError as error:
        raise Unavailable(f"The cloud cannot do this now: {error}") from error


def _message(shortage: Shortage, request: HostRequest) -> str:
    message = (
        f"Not enough hosts available: {request.least} wanted, {shortage.matching} match, {shortage.free} of them free"
    )
    if shortage.matching < request.least:
        return message
    if shortage.fits_from is None:
        return f"{message}; no later start is known to fit"
    return f"{message}; it would fit from {shortage.fits_from.start:%Y-%m-%d %H:%M:%S} UTC"


def _capacity_text(left: shared_capacity.Shortage, request: shared_capacity.CapacityRequest) -> str:
    order, size = request.order, request.order.size
    where = "" if order.affinity is None else " on one host" if order.affinity else ", each on another host"
    message = (
        f"Not enough hosts available: room for {order.amount} servers of {size.vcpus} VCPUs, {size.memory_mb} MB and "
        f"{size.disk_gb} GB wanted{where}, {left.matching} hosts match, and {left.fitting} fit on them"
    )
    if left.lasts_until is not None:
        last = left.lasts_until - request.grace
        return f"{message}; what is in use can last until {last:%Y-%m-%d %H:%M:%S} UTC at most"
    if order.kept:
        return message
    if left.fits_from is None:
        return f"{message}; no later start is known to fit"
    return f"{message}; it would fit from {left.fits_from:%Y-%m-%d %H:%M:%S} UTC"


def _addresses_text(shortage: Shortage, missing: tuple[str, ...], request: floating_ips.AddressRequest) -> str:
    message = (
        f"Not enough floating IPs available: {request.amount} wanted, {shortage.matching} of network "
        f"{request.network_id} can be reserved, {shortage.free} of them free"
    )
    if missing:
        return f"{message}; unavailable are {', '.join(missing)}"
    if request.must:
        return f"{message}; those of this lease may be promised to another"
    if shortage.matching < request.amount:
        return message
    if shortage.fits_from is None:
        return f"{message}; no later start is known to fit"
    return f"{message}; it would fit from {shortage.fits_from.start:%Y-%m-%d %H:%M:%S} UTC"


def _amounts_text(shortage: inventories.Shortage, request: inventories.AmountRequest) -> str:
    volumes = "1 volume" if request.pieces == 1 else f"{request.pieces} volumes of {request.piece} GB each"
    message = (
        f"Not enough storage available: {request.piece * request.pieces} GB of class {request.resource_class} wanted "
        f"in {volumes}, {shortage.total} GB can be reserved, {shortage.free} GB of them free"
    )
    if request.must:
        return f"{message}; volumes of this lease cannot move"
    if shortage.fits_from is None:
        return f"{message}; no later start is known to fit"
    return f"{message}; it would fit from {shortage.fits_from:%Y-%m-%d %H:%M:%S} UTC"


def check_version(lease: Lease, version: int | None) -> None:
    """Return if `version` is the lease's or None, otherwise raise PreconditionFailed."""
    if version is not None and version != lease.version:
        raise PreconditionFailed(f"The lease is at version {lease.version}, not {version}")


def lease_not_found(lease_id: UUID) -> NotFound:
    return NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
