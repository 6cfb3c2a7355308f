"""Bodies of the parts of a server: interfaces, volumes and metadata."""

from api.compute import common_body_keys as keys
from api.compute import validation
from api.schema import shapes
from api.schema.body import Below, Body, Ignored, Key
from climate.domain.errors import InvalidInput

ONE_ADDRESS = 'fixed_ips must be like [{"ip_address": "10.0.0.3"}]'


class FixedIp(Body):
    """Address of an interface."""

    UNKNOWN = "fixed_ips: {first!r} cannot be set; known is {sorted}"
    PREFIX = "fixed_ips."

    ip_address = keys.address(required=True)


FIXED_IP = FixedIp()


def _exact(value: object, field: str) -> str:
    """Return the only address of an interface."""
    if not isinstance(value, list) or len(value) != 1 or not isinstance(value[0], dict):
        raise InvalidInput(ONE_ADDRESS)
    return str(FIXED_IP.read(value[0])["ip_address"])


def _kept_with_server(value: object, field: str) -> None:
    if validation.flag(value, field):
        raise InvalidInput(f"{field} cannot be true: volumes belong to their reservations, not to servers")


class NewInterface(Body):
    """Network of an interface, and its address, without which the cloud chooses; or a port."""

    UNKNOWN = "interfaceAttachment: {first!r} cannot be set; use net_id or port_id"

    network_id = keys.uuid(key="net_id").or_null()
    port_id = keys.uuid().or_null()
    fixed_ips = Key(_exact, shapes.listing(FIXED_IP.shape(), 1) | {"minItems": 1}).or_null()
    tag = Ignored(shapes.text(60))


class NewVolumeAttachment(Body):
    """Volume that is attached to a server; `device` and `tag` have no effect."""

    UNKNOWN = "volumeAttachment: {first!r} is unknown; known are {sorted}"

    delete_on_termination = Key(_kept_with_server, {"type": "boolean", "enum": [False]}, default=False)
    device = keys.name().or_null()
    tag = keys.name().or_null()
    volume_id = keys.uuid(key="volumeId", required=True)


class Metadata(Body):
    """Metadata of a server."""

    UNKNOWN = "The body must have the key {sorted} alone, not {first!r}"

    metadata = keys.metadata(required=True)


class Meta(Body):
    """One key of the metadata of a server."""

    UNKNOWN = "The body must have the key {sorted} alone, not {first!r}"

    meta = Key(validation.metadata, shapes.texts(1), required=True)


INTERFACE, VOLUME = Below("interfaceAttachment", NewInterface()), Below("volumeAttachment", NewVolumeAttachment())
METADATA, META = Metadata(), Meta()
