"""Schemas of storage pools that can be reserved."""

from collections.abc import Mapping
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate, validates_schema

from api.reservation.dates import out_stamp
from api.reservation.hosts.schema import AllocationOut, HeldOut
from api.reservation.leases.schema import LinkOut
from api.reservation.unchanged_fields import Update
from api.reservation.view_decorator import Strict

MOST_GB = 1_000_000_000
NAME = validate.Regexp(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z", error="Must be a name such as ssd-1.")


def _capacity(**more: Any) -> fields.Integer:
    return fields.Integer(strict=True, validate=validate.Range(1, MOST_GB), **more)


class StoragePoolOrder(Strict):
    """A storage pool to register."""

    name = fields.String(required=True, validate=NAME)
    storage_class = fields.String(
        required=True, validate=NAME, metadata={"description": "Class that leases ask for, such as ssd."}
    )
    backend = fields.String(
        required=True, validate=NAME, metadata={"description": "Name of the volumes' backend in the cloud."}
    )
    capacity_gb = _capacity(required=True, metadata={"description": "GB that can be allocated at one instant."})


class StoragePoolOut(Schema):
    class Meta:
        unknown = RAISE

    id = fields.UUID(required=True)
    name = fields.String(required=True)
    storage_class = fields.String(required=True)
    backend = fields.String(metadata={"description": "Shown to administrators."})
    capacity_gb = fields.Integer(required=True)
    closed = fields.Boolean(required=True)
    created_at = out_stamp()
    updated_at = out_stamp(allow_none=True)


class StoragePoolChanges(Update, Strict):
    """Changes of a storage pool; absent keys keep their values."""

    answer_key = "storage_pool"
    answer_schema = StoragePoolOut

    name = fields.String(validate=NAME)
    capacity_gb = _capacity(metadata={"description": "At least the GB allocated at one instant."})
    closed = fields.Boolean(metadata={"description": "Refuse new allocations of it."})

    @validates_schema(pass_original=True)
    def _something(self, data: Mapping[str, object], original: Mapping[str, object], **_: object) -> None:
        if not original:
            raise ValidationError("No change is given; known are capacity_gb, closed, name")


class StoragePoolAnswer(Schema):
    storage_pool = fields.Nested(StoragePoolOut, required=True)


class StoragePoolsAnswer(Schema):
    storage_pools = fields.List(fields.Nested(StoragePoolOut), required=True)
    storage_pools_links = fields.List(fields.Nested(LinkOut))


class StorageHeldOut(HeldOut):
    size_gb = fields.Integer(required=True)
    kept = fields.Boolean(required=True, metadata={"description": "Whether its lease has ended and its volumes stay."})


class StorageAllocationOut(AllocationOut):
    name = fields.String(required=True)
    reservations = fields.List(fields.Nested(StorageHeldOut), required=True)


class StorageAllocationAnswer(Schema):
    allocation = fields.Nested(StorageAllocationOut, required=True)


class StorageAllocationsAnswer(Schema):
    allocations = fields.List(fields.Nested(StorageAllocationOut), required=True)
    allocations_links = fields.List(fields.Nested(LinkOut))
