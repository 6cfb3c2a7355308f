"""Schemas of floating IPs that can be reserved."""

from ipaddress import AddressValueError, IPv4Address

from marshmallow import RAISE, Schema, ValidationError, fields, validate

from api.reservation.dates import out_stamp
from api.reservation.hosts.schema import AllocationOut
from api.reservation.leases.schema import LinkOut
from api.reservation.view_decorator import Strict

LONGEST_ID = 255


def _is_ipv4(text: str) -> None:
    try:
        IPv4Address(text)
    except AddressValueError:
        raise ValidationError("Must be an IPv4 address such as 203.0.113.7.") from None


class FloatingIpOrder(Strict):
    """A floating IP to register: an address of the network that the cloud does not allocate itself."""

    floating_network_id = fields.String(
        required=True,
        validate=[validate.Length(1, LONGEST_ID), validate.Regexp(r"\S")],
        metadata={"description": "Id or name of an external network."},
    )
    floating_ip_address = fields.String(required=True, validate=_is_ipv4, metadata={"format": "ipv4"})


class FloatingIpOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    floating_network_id = fields.String(required=True)
    subnet_id = fields.String(required=True)
    floating_ip_address = fields.String(required=True)
    reservable = fields.Boolean(required=True)
    created_at = out_stamp()
    updated_at = out_stamp(allow_none=True)


class FloatingIpAnswer(Schema):
    floatingip = fields.Nested(FloatingIpOut, required=True)


class FloatingIpsAnswer(Schema):
    floatingips = fields.List(fields.Nested(FloatingIpOut), required=True)
    floatingips_links = fields.List(fields.Nested(LinkOut))


class AddressAllocationOut(AllocationOut):
    floating_ip_address = fields.String(required=True)


class AddressAllocationAnswer(Schema):
    allocation = fields.Nested(AddressAllocationOut, required=True)


class AddressAllocationsAnswer(Schema):
    allocations = fields.List(fields.Nested(AddressAllocationOut), required=True)
    allocations_links = fields.List(fields.Nested(LinkOut))
