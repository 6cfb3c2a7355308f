"""Body of an estimate for a parent zone, read into a request spec of the bundled cloud."""

from api.schema import shapes
from api.schema.body import ABSENT, Body, Key, Values
from climate.compute.models.request import pools_of
from climate.compute.projects.quota_check import MOST_AT_ONCE
from climate.compute.zones.builds.request_spec import LONGEST_NAME, SIZES, RequestSpec
from climate.domain.errors import InvalidInput

HIGHEST = 2**31 - 1


def _name(value: object, field: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME:
        raise InvalidInput(f"{field} must be a text of 1 to {LONGEST_NAME} characters")
    return value


def _size(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= HIGHEST:
        raise InvalidInput(f"{field} must be a whole number from 0")
    return value


def _count(value: object, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_AT_ONCE:
        raise InvalidInput(f"{field} must be a whole number from 1 to {MOST_AT_ONCE}")
    return value


def _hints(value: object, field: str) -> dict[str, object]:
    if value is not None and not isinstance(value, dict):
        raise InvalidInput(f"{field} must be an object")
    return value or {}


def _no_offer(value: object, field: str) -> None:
    if value is not None:
        raise InvalidInput(f"{field} is for POST /servers: it names a node that was chosen already")


def _size_key(word: str) -> Key:
    return Key(_size, shapes.number(), key=word, default=ABSENT)


class InstanceType(Body):
    """Flavor by its name, and the sizes that it must have; other keys are ignored."""

    IS_OPEN = True

    name = Key(_name, shapes.name()).or_null()
    vcpus = _size_key("vcpus")
    ram_mb = _size_key("memory_mb")
    disk_gb = _size_key("local_gb")
    ephemeral_gb = _size_key("ephemeral_gb")
    swap_mb = _size_key("swap_mb")


class InstanceProperties(Body):
    """Image by its name, and the availability zone; other keys are ignored."""

    IS_OPEN = True

    image_name = Key(_name, shapes.name()).or_null()
    availability_zone = Key(_name, shapes.name()).or_null()


TYPE, PROPERTIES = InstanceType(), InstanceProperties()


def _type(value: object, field: str) -> dict[str, object]:
    return TYPE.read_value({} if value is None else value, field)


def _properties(value: object, field: str) -> dict[str, object]:
    return PROPERTIES.read_value({} if value is None else value, field)


class RequestSpecBody(Body):
    """Request spec, as an object or as a text of JSON; other keys are ignored."""

    IS_OPEN = True

    instance_type = Key(_type, shapes.or_null(TYPE.shape()))
    instance_properties = Key(_properties, shapes.or_null(PROPERTIES.shape()))
    scheduler_hints = Key(_hints, shapes.or_null({"type": "object"}))
    filter = Key(_name, shapes.name()).or_null()
    num_instances = Key(_count, shapes.number(1, MOST_AT_ONCE), default=1)
    blob = Key(_no_offer, {"type": "null"})


SPEC = RequestSpecBody()


def request_spec(body: Values) -> RequestSpec:
    """Return the request spec of a body; InvalidInput or BadRequest name the invalid key."""
    given = SPEC.read(body)
    kind, properties, hints = given["instance_type"], given["instance_properties"], given["scheduler_hints"]
    if given["filter"] is not None:
        hints = {**hints, "host_filter": given["filter"]}
    pools_of(hints)
    return RequestSpec(
        given["num_instances"],
        kind["name"],
        {size: kind[size] for size in SIZES.values() if size in kind},
        properties["image_name"],
        properties["availability_zone"],
        hints,
    )
