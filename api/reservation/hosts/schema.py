"""Schemas of hosts, their capabilities and their allocations."""

from collections.abc import Mapping
from typing import Any

from marshmallow import INCLUDE, RAISE, Schema, ValidationError, fields, post_load, validate

from api.reservation.dates import DATE, out_date, out_stamp
from api.reservation.leases.request_options import DryRun
from api.reservation.leases.schema import LinkOut
from api.reservation.pages import Paged
from api.reservation.unchanged_fields import Update
from api.reservation.view_decorator import Strict
from climate.domain.errors import InvalidInput

LONGEST_VALUE = 4096
MOST_CAPABILITIES = 256

Extra = dict[str, str | None]


def capabilities(given: Mapping[str, object], *, removable: bool) -> Extra:
    """Return extra capabilities as texts; numbers and booleans become texts.  None removes one, if allowed."""
    if len(given) > MOST_CAPABILITIES:
        raise InvalidInput(f"A host has at most {MOST_CAPABILITIES} extra capabilities")
    return {name: None if value is None and removable else _text(name, value) for name, value in given.items()}


def _text(name: str, value: object) -> str:
    if not isinstance(value, str | int | float):
        raise InvalidInput(f"Extra capability {name[:64]!r} must be a text, not {type(value).__name__}")
    text = str(value)
    if not text.strip() or len(text) > LONGEST_VALUE:
        raise InvalidInput(f"Extra capability {name[:64]!r} must be a text of 1 to {LONGEST_VALUE} characters")
    return text


class HostOrder(Schema):
    """A host to register: its `name` or `id` in the cloud, and any extra capability as a key."""

    class Meta:
        unknown = INCLUDE

    name = fields.String(validate=validate.Length(1, 255))
    id = fields.Raw(metadata={"description": "Its hypervisor id or UUID, or its name; takes precedence over `name`."})

    @post_load
    def _named(self, data: dict[str, Any], **_: object) -> dict[str, object]:
        name = data.pop("name", None)
        given = data.pop("id", None)
        if given is not None and (not isinstance(given, str | int) or isinstance(given, bool)):
            raise ValidationError("Not a valid hypervisor id: a number, a UUID or a name.", field_name="id")
        name = str(given) if given is not None else name
        if not name or not name.strip():
            raise ValidationError("Missing data for required field.", field_name="name")
        return {"name": name, "extra": data}


class Registering(DryRun):
    """Query of the registration of a host."""

    drain = fields.Boolean(
        load_default=False,
        metadata={
            "description": "Accept a host with servers: it gets no new ones, and joins the pool when they are gone."
        },
    )


class HostOut(Schema):
    """A host, with its extra capabilities beside these keys."""

    class Meta:
        unknown = INCLUDE

    id = fields.String(required=True, validate=validate.Regexp("^[0-9]+$"))
    vcpus = fields.Integer(required=True)
    cpu_info = fields.String(required=True)
    hypervisor_type = fields.String(required=True)
    hypervisor_version = fields.Integer(required=True)
    hypervisor_hostname = fields.String(required=True)
    service_name = fields.String(required=True)
    memory_mb = fields.Integer(required=True)
    local_gb = fields.Integer(required=True)
    status = fields.String(required=True, allow_none=True)
    availability_zone = fields.String(required=True, allow_none=True)
    trust_id = fields.String(required=True, allow_none=True)
    reservable = fields.Boolean(required=True)
    created_at = out_stamp()
    updated_at = out_stamp(allow_none=True)


class HostChanges(Update):
    """Extra capabilities to set; null removes one."""

    answer_key = "host"
    answer_schema = HostOut

    class Meta:
        unknown = INCLUDE

    def read_only(self) -> frozenset[str]:
        """Return the columns of a host: all other keys are extra capabilities."""
        return frozenset(HostOut().fields)


class HostAnswer(Schema):
    host = fields.Nested(HostOut, required=True)


class HostsAnswer(Schema):
    hosts = fields.List(fields.Nested(HostOut), required=True)
    hosts_links = fields.List(fields.Nested(LinkOut))


class PropertyQuery(Strict):
    detail = fields.Boolean(load_default=False, metadata={"description": "Include values and visibility."})
    all = fields.Boolean(load_default=False, metadata={"description": "Include private ones (administrator)."})


class StrictBoolean(fields.Boolean):
    """A boolean; neither 1 nor "yes"."""

    def _deserialize(self, value: Any, *args: Any, **more: Any) -> Any:
        if not isinstance(value, bool):
            raise self.make_error("invalid", input=value)
        return value


class PropertyChange(Strict):
    private = StrictBoolean(required=True)


class PropertyListed(Schema):
    class Meta:
        unknown = RAISE

    property = fields.String(required=True)
    private = fields.Boolean()
    values = fields.List(fields.String())


class PropertiesAnswer(Schema):
    resource_properties = fields.List(fields.Nested(PropertyListed), required=True)


class PropertyOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    resource_type = fields.String(required=True)
    property_name = fields.String(required=True)
    private = fields.Boolean(required=True)
    created_at = out_date()
    updated_at = fields.String(required=True, allow_none=True, validate=validate.Regexp(DATE))


class PropertyAnswer(Schema):
    resource_property = fields.Nested(PropertyOut, required=True)


class OneAllocationQuery(Strict):
    lease_id = fields.String()
    reservation_id = fields.String()


class AllocationQuery(Paged):
    lease_id = fields.String()
    reservation_id = fields.String()


class HeldOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    lease_id = fields.UUID(required=True)
    start_date = out_date()
    end_date = out_date()


class AllocationOut(Schema):
    class Meta:
        unknown = RAISE

    resource_id = fields.String(required=True)
    reservations = fields.List(fields.Nested(HeldOut), required=True)


class AllocationAnswer(Schema):
    allocation = fields.Nested(AllocationOut, required=True)


class AllocationsAnswer(Schema):
    allocations = fields.List(fields.Nested(AllocationOut), required=True)
    allocations_links = fields.List(fields.Nested(LinkOut))
