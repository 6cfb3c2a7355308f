"""Saying no in a way that helps."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

from climate.cloud import CloudError, Refused
from climate.context import Climate
from climate.domain.errors import Conflict, NotEnoughHosts, NotFound, PreconditionFailed, Unavailable
from climate.domain.lease import Lease
from climate.service.unit import work
from climate.store import availability
from climate.store.availability import Short, Shortage, Wanted


@contextmanager
def explained(climate: Climate) -> Iterator[None]:
    """Turn a bare shortage into one that says how many match, how many are free, and when it would fit.

    Looked up in a transaction of its own, after the refused one has given its locks up.
    """
    try:
        yield
    except Short as short:
        wanted = short.wanted
        found = work(climate, lambda conn, patient: availability.shortage(conn, wanted))
        raise NotEnoughHosts(_say(found, wanted, climate)) from None


@contextmanager
def of_the_cloud() -> Iterator[None]:
    """Turn what the cloud says into an answer for who waits for it: Conflict for ever, Unavailable for now."""
    try:
        yield
    except Refused as error:
        raise Conflict(str(error)) from error
    except CloudError as error:
        raise Unavailable(f"The cloud cannot do this now: {error}") from error


def _say(found: Shortage, wanted: Wanted, climate: Climate) -> str:
    told = f"Not enough hosts available: {wanted.least} wanted, {found.matching} match, {found.free} of them free"
    if found.matching < wanted.least:
        return told
    if found.fits_from is None:
        return f"{told}; no later start is known to fit"
    start = found.fits_from.start + timedelta(seconds=climate.settings.cleaning_time)
    return f"{told}; it would fit from {start:%Y-%m-%d %H:%M:%S} UTC"


def unless_version(lease: Lease, version: int | None) -> None:
    """Return when `version` is the lease's or none was given, else raise PreconditionFailed."""
    if version is not None and version != lease.version:
        raise PreconditionFailed(f"The lease is at version {lease.version}, not {version}")


def no_lease(lease_id: UUID) -> NotFound:
    return NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
