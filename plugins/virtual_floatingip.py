"""virtual:floatingip: addresses of an external network, which belong to the project for the time of the lease."""

from collections.abc import Mapping
from functools import partial
from ipaddress import AddressValueError, IPv4Address

from marshmallow import Schema, ValidationError, fields, validate, validates_schema
from sqlalchemy import Connection

from climate.cloud import FloatingIps
from climate.domain.availability.demands import Horizon, WholeDemand
from climate.domain.errors import Conflict, InvalidInput
from climate.domain.facts import AddressHold
from climate.domain.reservation_spec import Spec
from climate.plugin import ADDRESSES, Allocation, Offer, ReservationContext, ResourceRequest, with_grace
from climate.plugin.schema_fields import Count, grace_period
from climate.store.allocation import candidates, floating_ips, free_times
from climate.store.allocation.floating_ips import AddressRequest

MOST = 10_000
LONGEST_ID = 255
CHANGEABLE = frozenset({"amount", "required_floatingips", "grace_period"})

TOO_MANY_REQUIRED = "required_floatingips must not be longer than amount: {given} are required, and amount is {amount}"


def _is_ipv4(text: str) -> None:
    try:
        IPv4Address(text)
    except AddressValueError:
        raise ValidationError(f"{text[:64]!r} is not an IPv4 address such as 203.0.113.7.") from None


def _each_once(texts: list[str]) -> None:
    if len(set(texts)) < len(texts):
        raise ValidationError("An address is given twice.")


class FloatingIpSpec(Schema):
    """Number of addresses, their network, and required addresses."""

    network_id = fields.String(
        required=True,
        validate=validate.Length(1, LONGEST_ID),
        metadata={"description": "Id of the external network, as shown in the list of reservable addresses."},
    )
    amount = Count(required=True, validate=validate.Range(1, MOST), metadata={"description": "Number of addresses."})
    required_floatingips = fields.List(
        fields.String(validate=_is_ipv4, metadata={"format": "ipv4"}),
        load_default=list,
        validate=[validate.Length(max=MOST), _each_once],
        metadata={"description": "Required IPv4 addresses; at most as many as amount."},
    )
    grace_period = grace_period()

    @validates_schema(skip_on_field_errors=True)
    def _no_more_required_than_wanted(self, data: Spec, **_: object) -> None:
        if "amount" in data:
            _check_required(data)


def _check_required(spec: Spec) -> None:
    required = spec.get("required_floatingips") or ()
    if len(required) > spec["amount"]:
        raise InvalidInput(TOO_MANY_REQUIRED.format(given=len(required), amount=spec["amount"]))


def _refuse_changes(request: ResourceRequest, before: Spec) -> None:
    """Raise an error for changes of fields that Blazar does not allow to change."""
    for name in sorted(set(request.spec) - CHANGEABLE):
        if name not in before or request.spec[name] != before[name]:
            raise Conflict(f"{name} cannot be updated")
    required = request.spec["required_floatingips"]
    if required and required != before["required_floatingips"]:
        raise InvalidInput("required_floatingips can only be updated to [], which requires none in particular")
    if request.active and request.spec["amount"] < before["amount"]:
        raise InvalidInput(
            f"amount cannot become less while the lease is active: it is {before['amount']}, "
            f"and {request.spec['amount']} was asked for"
        )


def _request(request: ResourceRequest) -> tuple[Spec, AddressRequest]:
    """Return the spec to store, and the request for addresses."""
    spec = with_grace(request)
    present = tuple(hold.number for hold in request.present.addresses) if request.present else ()
    if request.present:
        _refuse_changes(request, request.present.spec)
    _check_required(spec)
    return spec, AddressRequest(
        network_id=spec["network_id"],
        amount=spec["amount"],
        window=request.shared_window,
        own=request.own,
        keep=present,
        must=present if request.active else (),
        required=tuple(spec["required_floatingips"]),
        without=request.taken_addresses,
    )


def _allocation(request: ResourceRequest, spec: Spec, chosen: Mapping[int, str]) -> Allocation:
    holds = tuple(AddressHold(number, address, request.shared_window) for number, address in chosen.items())
    return Allocation(spec=spec, addresses=holds)


class FloatingIp:
    """Floating IPs of a network, by number."""

    resource_type = "virtual:floatingip"
    spec_schema = FloatingIpSpec

    def check(self, cloud: object, request: ResourceRequest) -> None:
        """Do nothing: the reservable addresses are in the database."""

    def reserve(self, conn: Connection, request: ResourceRequest) -> Allocation:
        spec, wanted = _request(request)
        chosen = floating_ips.pick(conn, wanted, patient=request.patient)
        return _allocation(request, spec, {one.number: one.address for one in chosen})

    def offer(self, conn: Connection, request: ResourceRequest) -> Offer:
        spec, wanted = _request(request)
        return Offer(
            ADDRESSES,
            partial(candidates.of_addresses, request=wanted),
            floating_ips.lock,
            lambda chosen, known: _allocation(
                request, spec, {number: known.names[number] for number in sorted(chosen)}
            ),
            floating_ips.Short(wanted),
        )

    def demand(self, conn: Connection, request: ResourceRequest, horizon: Horizon) -> WholeDemand:
        spec = with_grace(request)
        required = tuple(spec["required_floatingips"])
        wanted = AddressRequest(spec["network_id"], spec["amount"], request.shared_window, required=required)
        return free_times.of_addresses(conn, wanted, horizon, request.shared_tail)

    def on_start(self, cloud: FloatingIps, context: ReservationContext) -> None:
        network = context.reservation.spec["network_id"]
        for hold in context.reservation.addresses:
            cloud.lend_address(str(context.reservation.id), context.project_id, network, hold.address, context.token)

    def before_end(self, cloud: object, context: ReservationContext) -> None:
        """Do nothing: such reservations have no actions before the end."""

    def close(self, cloud: object, context: ReservationContext) -> None:
        """Do nothing: the addresses stay as they are until the end."""

    def on_end(self, cloud: FloatingIps, context: ReservationContext) -> None:
        # An address that was never handed over may exist for another purpose.
        addresses = [hold.address for hold in context.reservation.addresses] if context.started else []
        cloud.take_back_addresses(str(context.reservation.id), addresses, context.token)
