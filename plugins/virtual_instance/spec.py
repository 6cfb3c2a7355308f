"""Requests for servers: one by its id, or a number of one size."""

from collections.abc import Mapping

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from climate.plugin.schema_fields import Affinity, Count, grace_period, is_requirement
from climate.plugin.shared_capacity import MOST, TERMINATE
from plugins.virtual_instance.reserved_server import actions

SIZES = ("amount", "disk_gb", "memory_mb", "vcpus")
ROOM = {*SIZES, "affinity", "resource_properties", "grace_period"}

MISSING = fields.Field.default_error_messages["required"]


def _can_end(text: str) -> None:
    if text != TERMINATE:
        actions(text)


def _number(says: str) -> Count:
    return Count(validate=validate.Range(1, MOST), metadata={"description": says})


class InstanceSpec(Schema):
    """A server and its action at the end, or a number of servers, their size and the requirements of their hosts."""

    resource_id = fields.UUID(metadata={"description": "Id of the server; excludes the fields of a size."})
    vcpus = _number("Of each server.")
    memory_mb = _number("Of each server, in MB.")
    disk_gb = _number("Of each server, in GB.")
    amount = _number("How many servers.")
    affinity = Affinity()
    resource_properties = fields.String(validate=is_requirement, metadata={"description": "Requirements of the hosts."})
    on_end = fields.String(
        validate=_can_end,
        metadata={"description": "Of one server: comma list of create_image, suspend, delete. Else: terminate."},
    )
    grace_period = grace_period()

    @validates_schema(skip_on_field_errors=True)
    def _of_one_form(self, data: Mapping[str, object], *, partial: object, **_: object) -> None:
        if "resource_id" in data and (both := sorted(ROOM & set(data))):
            raise ValidationError("not together with resource_id", both[0])
        if "resource_id" not in data and not partial:
            missing = [name for name in SIZES if name not in data]
            if missing:
                raise ValidationError({name: [MISSING] for name in missing})
            if data.get("on_end", TERMINATE) != TERMINATE:
                raise ValidationError("servers on shared hosts are always terminated", "on_end")
