"""Bodies of metadata definitions: namespaces, objects, properties, tags, and associations with resource types."""

from collections.abc import Callable, Mapping
from typing import Unpack

from api.compute import common_body_keys as keys
from api.compute import validation
from api.schema import shapes
from api.schema.body import ABSENT, Body, Key, KeyOptions, Values, as_given
from climate.compute.models.metadef import (
    MOST,
    OBJECTS,
    PRIVATE,
    PROPERTIES,
    RESOURCE_TYPES,
    TAGS,
    VISIBILITIES,
    Part,
)
from climate.domain.errors import InvalidInput

TYPES = ("array", "boolean", "integer", "number", "object", "string", "null")
"""Types of the values of a property, as JSON schema names them."""

LONGEST = 4096
UNKNOWN = "Unknown key {first}: there are {known}"


def _name(value: object, field: str) -> str:
    name = validation.name(value, field)
    if "/" in name:
        raise InvalidInput(f"{field} must be a text without '/', got {name[:80]!r}")
    return name


def name_key(**options: Unpack[KeyOptions]) -> Key:
    """Return a key whose value is the name of a definition, which is a part of paths."""
    return Key(_name, shapes.name() | {"pattern": "^[^/]+$"}, **options)


def _text(value: object, field: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST:
        raise InvalidInput(f"{field} must be a text of at most {LONGEST} characters")
    return value


def _text_key() -> Key:
    return Key(_text, shapes.text(LONGEST), default=ABSENT).or_null()


def _list_key(what: str, fits: Callable[[object], bool], shape: shapes.Schema) -> Key:
    def read(value: object, field: str) -> list[object]:
        if not isinstance(value, list) or len(value) > MOST or not all(fits(one) for one in value):
            raise InvalidInput(f"{field} must be a list of at most {MOST} {what}")
        return value

    return Key(read, shapes.listing(shape, MOST), default=ABSENT)


def _texts_key() -> Key:
    return _list_key("texts", lambda one: isinstance(one, str), shapes.text())


def _number(value: object, field: str) -> object:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InvalidInput(f"{field} must be a number")
    return value


def _object(value: object, field: str) -> object:
    if not isinstance(value, dict):
        raise InvalidInput(f"{field} must be an object")
    return value


class Property(Body):
    """Property that clients may set, described as JSON schema does."""

    UNKNOWN = UNKNOWN

    title = Key(_text, shapes.text(LONGEST), required=True)
    type = keys.word({one: one for one in TYPES}, f"{{field}} must be one of {', '.join(TYPES)}", required=True)
    description = _text_key()
    readonly = keys.flag(default=ABSENT)
    operators = _texts_key()
    enum = _list_key("values", lambda one: not isinstance(one, (dict, list)), {})
    default = Key(as_given, {}, default=ABSENT)
    pattern = _text_key()
    minimum = Key(_number, {"type": "number"}, default=ABSENT)
    maximum = Key(_number, {"type": "number"}, default=ABSENT)
    minLength = keys.count(default=ABSENT)  # noqa: N815
    maxLength = keys.count(default=ABSENT)  # noqa: N815
    minItems = keys.count(default=ABSENT)  # noqa: N815
    maxItems = keys.count(default=ABSENT)  # noqa: N815
    uniqueItems = keys.flag(default=ABSENT)  # noqa: N815
    additionalItems = keys.flag(default=ABSENT)  # noqa: N815
    items = Key(_object, {"type": "object"}, default=ABSENT)


class NamedProperty(Property):
    """Property with its name."""

    name = name_key(required=True)


PROPERTY, NAMED_PROPERTY = Property(), NamedProperty()


def _properties(value: object, field: str) -> dict[str, Values]:
    if not isinstance(value, dict) or len(value) > MOST:
        raise InvalidInput(f"{field} must be an object of at most {MOST} properties")
    return {_name(name, field): PROPERTY.read_value(one, f"{field}.{name[:80]}") for name, one in value.items()}


def _properties_key() -> Key:
    return Key(_properties, {"type": "object", "additionalProperties": PROPERTY.shape()}, default=ABSENT)


class Object(Body):
    """Object: a group of properties."""

    UNKNOWN = UNKNOWN

    name = name_key(required=True)
    description = _text_key()
    required = _texts_key()
    properties = _properties_key()


class Tag(Body):
    """Tag that clients may set."""

    UNKNOWN = UNKNOWN

    name = name_key(required=True)


class Association(Body):
    """Association with a resource type; the prefix is that of the names of properties."""

    UNKNOWN = UNKNOWN

    name = name_key(required=True)
    prefix = _text_key()
    properties_target = _text_key()


PARTS: Mapping[str, Body] = {
    OBJECTS: Object(),
    PROPERTIES: NAMED_PROPERTY,
    TAGS: Tag(),
    RESOURCE_TYPES: Association(),
}
"""Body of a part by its kind."""


def part(kind: str, body: Mapping[str, object]) -> tuple[str, Part]:
    """Return the name of a part and its values; InvalidInput."""
    values = PARTS[kind].read(body)
    return values.pop("name"), values


def parts(kind: str, value: object, field: str) -> dict[str, Part]:
    """Return the parts of a list by name; InvalidInput, also for a name that is there twice."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise InvalidInput(f"{field} must be a list of objects")
    read = [part(kind, one) for one in value]
    if len({name for name, _ in read}) != len(read):
        raise InvalidInput(f"{field} must have each name once")
    return dict(read)


def _parts_key(kind: str, **options: Unpack[KeyOptions]) -> Key:
    shape = shapes.listing(PARTS[kind].shape(), MOST)
    return Key(lambda value, field: parts(kind, value, field), shape, **options)


class Tags(Body):
    """Tags that replace all tags of a namespace."""

    UNKNOWN = UNKNOWN

    tags = _parts_key(TAGS, required=True)


class ChangedNamespace(Body):
    """New values of a namespace."""

    IS_OPEN = True

    namespace = name_key(required=True)
    visibility = keys.word(
        {one: one for one in VISIBILITIES}, f"{{field}} must be one of {', '.join(VISIBILITIES)}", default=ABSENT
    )
    protected = keys.flag(default=ABSENT)
    display_name = _text_key()
    description = _text_key()
    owner = keys.name(default=ABSENT)


class NewNamespace(ChangedNamespace):
    """Namespace, perhaps with its parts."""

    visibility = keys.word(
        {one: one for one in VISIBILITIES}, f"{{field}} must be one of {', '.join(VISIBILITIES)}", default=PRIVATE
    )
    objects = _parts_key(OBJECTS, default=ABSENT)
    properties = _properties_key()
    tags = _parts_key(TAGS, default=ABSENT)
    resource_types = _parts_key(RESOURCE_TYPES, key="resource_type_associations", default=ABSENT)


NEW, CHANGED, ALL_TAGS = NewNamespace(), ChangedNamespace(), Tags()
