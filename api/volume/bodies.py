"""Bodies of Block Storage."""

from api.compute import common_body_keys as keys
from api.compute import validation
from api.schema import shapes
from api.schema.body import Below, Body, Key
from climate.compute.volume_directory import UNRESERVED
from climate.domain.errors import InvalidInput

MOST_GB = 1 << 20
"""Maximum size of one volume in GB."""


def _absent(value: object, field: str) -> None:
    if value is not None:
        raise InvalidInput(f"{field} must be null: volumes are created empty, and there are no snapshots and backups")


def _type(value: object, field: str) -> None:
    if value != UNRESERVED:
        raise InvalidInput(f"{field} must be null or {UNRESERVED!r}: other classes of storage are reserved by a lease")


def _single(value: object, field: str) -> None:
    if validation.flag(value, field):
        raise InvalidInput(f"{field} cannot be true: a volume has one server at most")


def _nothing() -> Key:
    return Key(_absent, {"type": "null"})


class NewVolume(Body):
    """Size of a volume in GB, its name, description and metadata; it is created empty."""

    UNKNOWN = "volume: {first!r} is unknown; known are {sorted}"
    PREFIX = "volume."

    size = keys.count(1, MOST_GB, required=True)
    name = keys.name().or_null()
    description = keys.description()
    metadata = keys.metadata_or_empty()
    availability_zone = Key(validation.zone_name, shapes.name()).or_null()
    volume_type = Key(_type, shapes.name()).or_null()
    multiattach = Key(_single, {"type": "boolean", "enum": [False]}).or_null()
    snapshot_id = _nothing()
    source_volid = _nothing()
    image_ref = Key(_absent, {"type": "null"}, key="imageRef")
    backup_id = _nothing()
    consistencygroup_id = _nothing()


VOLUME = Below("volume", NewVolume())
