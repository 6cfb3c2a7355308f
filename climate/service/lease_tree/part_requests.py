"""Requests of a parent deployment for parts of leases, carried out by the same functions as those of users."""

import hashlib
import json
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import structlog
from marshmallow import RAISE, ValidationError

from climate.cloud import CloudError
from climate.cloud.children import (
    Action,
    Asker,
    Confirm,
    Hold,
    Look,
    Offer,
    PartAnswer,
    PartLease,
    PartOrder,
    Prolong,
    Release,
    Verdict,
)
from climate.context import Climate
from climate.database.connections import reading
from climate.domain.errors import Busy, ClimateError, InvalidInput, NotFound, Unavailable
from climate.domain.lease import Lease
from climate.domain.policy import Caller
from climate.domain.status import LeaseStatus
from climate.service.leases import confirmation, leases, update
from climate.service.leases.leases import LeaseRequest
from climate.service.leases.update import Changes
from climate.store.hosts.hosts import HOST_TYPE
from climate.store.idempotency import Key
from climate.store.leases import fences

log = structlog.get_logger(__name__)

TOO_LATE = "TooLate"
OUTDATED = "Outdated"
"""Reasons of refusals that are not errors."""

OVER = frozenset({LeaseStatus.DELETING, LeaseStatus.TERMINATING, LeaseStatus.TERMINATED, LeaseStatus.ERROR})


def account_of(parent: str, asker: Asker) -> Caller:
    """Return the caller for a parent's request: the parent's account, in the project and with the role of its user."""
    return Caller(f"cell:{parent}", asker.project_id, frozenset({asker.role}))


def execute(climate: Climate, account: Caller, action: Action) -> PartAnswer:
    """Carry out a request of a parent; harmless if it is repeated, late or out of order.

    The account sees and changes only the leases that it has created. Raises CloudError for an action that may
    succeed later.
    """
    try:
        return _carried_out(climate, account, action)
    except NotFound as error:
        return PartAnswer(Verdict.GONE, reason=type(error).__name__)
    except (Busy, Unavailable) as error:
        raise CloudError(type(error).__name__) from error
    except ClimateError as error:
        log.info("parent request refused", action=type(action).__name__, reason=str(error))
        return PartAnswer(Verdict.REFUSED, reason=type(error).__name__)


def _carried_out(climate: Climate, account: Caller, action: Action) -> PartAnswer:
    match action:
        case Offer(order):
            wanted = _order(climate, order, timedelta(seconds=1))
            return _shown(leases.create(climate, account, wanted, dry_run=True))
        case Hold(order, key, seconds, until):
            with reading(climate.engine) as conn:
                if climate.now(conn) >= until:
                    return PartAnswer(Verdict.REFUSED, reason=TOO_LATE)
            wanted = _order(climate, order, timedelta(seconds=seconds))
            return _shown(leases.create(climate, account, wanted, _key(order, key, seconds)))
        case Confirm(lease_id, key):
            _own(climate, account, lease_id)
            return _shown(confirmation.confirm(climate, account, lease_id, key))
        case Look(lease_id, number):
            return _fenced(climate, lease_id, number, lambda: _own(climate, account, lease_id))
        case Prolong():
            return _prolonged(climate, account, action)
        case Release(lease_id):
            _own(climate, account, lease_id)
            return _shown(leases.delete(climate, account, lease_id))


def _prolonged(climate: Climate, account: Caller, action: Prolong) -> PartAnswer:
    lease_id, wanted = action.lease_id, Changes(end=action.end)

    def prolong() -> Lease:
        lease = _own(climate, account, lease_id)
        if lease.period.end == action.end:
            return lease
        return update.update(climate, account, lease_id, wanted, dry_run=action.dry_run)

    return _shown(prolong()) if action.dry_run else _fenced(climate, lease_id, action.number, prolong)


def _fenced(climate: Climate, lease_id: UUID, number: int, act: Callable[[], Lease]) -> PartAnswer:
    """Act unless the parent has sent a higher fencing token before; a lock serialises the requests."""
    refusal: ClimateError | None = None
    with climate.engine.begin() as conn:
        if not fences.passes(conn, lease_id, number, climate.now(conn)):
            return PartAnswer(Verdict.REFUSED, reason=OUTDATED)
        try:
            answer = _shown(act())
        except ClimateError as error:
            refusal = error
    if refusal is not None:
        raise refusal
    return answer


def _own(climate: Climate, account: Caller, lease_id: UUID) -> Lease:
    """Return the lease, which the account must have created."""
    lease = leases.get(climate, account, lease_id)
    if (lease.user_id, lease.project_id) != (account.user_id, account.project_id):
        raise NotFound(f"Object with {{'lease_id': '{lease_id}'}} not found")
    return lease


def _order(climate: Climate, order: PartOrder, hold: timedelta) -> LeaseRequest:
    """Return the order in the types of the plugin; raise InvalidInput for an invalid specification."""
    plugin = climate.plugins[HOST_TYPE]
    try:
        spec: dict[str, object] = plugin.spec_schema(unknown=RAISE).load(order.spec)
    except ValidationError as error:
        raise InvalidInput(f"The reservation cannot be used: {', '.join(sorted(error.messages_dict))}") from None
    reservation = {"resource_type": HOST_TYPE, **spec}
    return LeaseRequest(order.name, order.start, order.end, reservations=(reservation,), hold=hold)


def _key(order: PartOrder, key: str, seconds: int) -> Key:
    said = json.dumps([order.name, str(order.start), str(order.end), dict(order.spec), seconds], sort_keys=True)
    return Key(key, hashlib.sha256(said.encode()).hexdigest())


def _shown(lease: Lease) -> PartAnswer:
    (one,) = lease.reservations
    return PartAnswer(
        Verdict.DONE,
        PartLease(
            id=lease.id,
            reservation_id=one.id,
            hosts=len(one.holds) if lease.held else None,
            end=lease.period.end,
            is_over=lease.status in OVER,
        ),
    )
