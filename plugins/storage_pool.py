"""storage:pool: GB of a class of storage, as volumes that the project has for the time of the lease."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from marshmallow import Schema, fields, validate
from sqlalchemy import Connection

from climate.cloud.volumes import VolumeOrder, Volumes
from climate.domain.availability.demands import Horizon, SharedDemand
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.facts import FOREVER, AmountHold
from climate.domain.period import Period
from climate.domain.reservation_spec import Spec
from climate.plugin import INVENTORIES, Allocation, Offer, ReservationContext, ResourceRequest, with_grace
from climate.plugin.schema_fields import Count, grace_period
from climate.store.allocation import candidates, free_times, inventories
from climate.store.allocation.inventories import AmountRequest

RESOURCE_TYPE = "storage:pool"
MOST_GB = 1_000_000_000
MOST_VOLUMES = 100
DELETE, KEEP = "delete", "keep"
CHANGEABLE = frozenset({"size_gb", "volumes", "on_end", "grace_period"})


def storage_class(**more: Any) -> fields.String:
    """Return the field for the name of a class of storage."""
    return fields.String(
        required=True,
        validate=validate.Regexp(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z", error="Must be a name such as ssd."),
        **more,
    )


class StorageSpec(Schema):
    """Amount and class of storage, number of volumes, and the action for them at the end."""

    size_gb = Count(required=True, validate=validate.Range(1, MOST_GB), metadata={"description": "Total size in GB."})
    storage_class = storage_class(metadata={"description": "Class of storage, such as ssd."})
    volumes = Count(
        load_default=1,
        validate=validate.Range(1, MOST_VOLUMES),
        metadata={"description": "Number of volumes of equal size; size_gb must be a multiple of it."},
    )
    on_end = fields.String(
        load_default=DELETE,
        validate=validate.OneOf([DELETE, KEEP]),
        metadata={"description": "Action for the volumes at the end: delete them, or keep them for the project."},
    )
    grace_period = grace_period()


def _volume_gb(spec: Spec) -> int:
    """Return the size of each volume in GB. Raise InvalidInput if the volumes cannot be of equal size."""
    size, count = spec["size_gb"], spec["volumes"]
    if size % count:
        fitting = " or ".join(str(one) for one in (size - size % count, size - size % count + count) if one)
        raise InvalidInput(f"size_gb {size} cannot be divided into {count} equal volumes of whole GB: {fitting} can")
    return int(size // count)


def _refuse_changes(request: ResourceRequest, before: Spec) -> None:
    for name in sorted(set(request.spec) - CHANGEABLE):
        if name not in before or request.spec[name] != before[name]:
            raise Conflict(f"{name} cannot be updated")
    if not request.active:
        return
    for name in ("volumes", "on_end"):
        if request.spec[name] != before[name]:
            raise InvalidInput(
                f"{name} cannot change while the lease is active: it is {before[name]}, "
                f"and {request.spec[name]} was asked for"
            )
    if request.spec["size_gb"] < before["size_gb"]:
        raise InvalidInput(
            f"size_gb cannot become less while the lease is active: it is {before['size_gb']}, "
            f"and {request.spec['size_gb']} was asked for"
        )


def _request(request: ResourceRequest) -> tuple[Spec, AmountRequest]:
    """Return the spec to store, and the request for volumes."""
    spec = with_grace(request)
    if request.present:
        _refuse_changes(request, request.present.spec)
    return spec, _amount_request(request, spec, _volume_gb(spec))


def _allocation(spec: Spec, request: AmountRequest, chosen: Mapping[int, int]) -> Allocation:
    pieces = sorted((number, count) for number, count in chosen.items() if count)
    holds = tuple(AmountHold(number, count * request.piece, request.window) for number, count in pieces)
    return Allocation(spec=spec, amounts=holds)


def _amount_request(request: ResourceRequest, spec: Spec, piece: int) -> AmountRequest:
    window = request.shared_window
    if spec["on_end"] == KEEP:
        window = Period(window.start, FOREVER)
    own = (*request.own, *(one.id for one in request.beside))
    present = {}
    if request.present:
        before = _volume_gb(request.present.spec)
        present = {hold.number: hold.amount // before for hold in request.present.amounts}
    return AmountRequest(
        RESOURCE_TYPE,
        spec["storage_class"],
        piece,
        spec["volumes"],
        window,
        own,
        present,
        request.active,
        request.taken_amounts,
    )


class StoragePool:
    """GB of pools of one class: no volume is divided between pools."""

    resource_type = RESOURCE_TYPE
    spec_schema = StorageSpec

    def check(self, cloud: object, request: ResourceRequest) -> None:
        """Refuse volumes that cannot be of equal size; the pools are in the database."""
        _volume_gb(request.spec)

    def reserve(self, conn: Connection, request: ResourceRequest) -> Allocation:
        spec, wanted = _request(request)
        return _allocation(spec, wanted, inventories.pick(conn, wanted, patient=request.patient))

    def offer(self, conn: Connection, request: ResourceRequest) -> Offer:
        spec, wanted = _request(request)
        return Offer(
            INVENTORIES,
            partial(candidates.of_amounts, request=wanted, until=request.shared_window),
            inventories.lock,
            lambda chosen, _: _allocation(spec, wanted, chosen),
            inventories.Short(wanted),
        )

    def demand(self, conn: Connection, request: ResourceRequest, horizon: Horizon) -> SharedDemand:
        spec = with_grace(request)
        return free_times.of_amounts(
            conn, _amount_request(request, spec, _volume_gb(spec)), horizon, request.shared_tail
        )

    def on_start(self, cloud: Volumes, context: ReservationContext) -> None:
        """Create the volumes, or extend them to their new size."""
        spec, number = context.reservation.spec, 0
        size = _volume_gb(spec)
        for hold in context.reservation.amounts:
            for _ in range(hold.amount // size):
                number += 1
                order = VolumeOrder(
                    pool=str(context.reservation.id),
                    number=number,
                    project_id=context.project_id,
                    backend=context.backends[hold.number],
                    storage_class=spec["storage_class"],
                    size_gb=size,
                )
                cloud.ensure_volume(order, context.token)

    def before_end(self, cloud: object, context: ReservationContext) -> None:
        """Do nothing: such reservations have no actions before the end."""

    def close(self, cloud: object, context: ReservationContext) -> None:
        """Do nothing: the volumes stay as they are until the end."""

    def on_end(self, cloud: Volumes, context: ReservationContext) -> None:
        """Delete the volumes, or leave them to their project; volumes never handed over are always deleted."""
        keep = context.started and context.reservation.spec["on_end"] == KEEP
        cloud.drop_volumes(str(context.reservation.id), context.token, keep=keep)
