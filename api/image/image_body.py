"""Bodies of images: creation, and changes by JSON patch."""

import re
from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from api.compute import common_body_keys as keys
from api.compute import validation
from api.request_context import caller
from api.schema import shapes
from api.schema.body import ABSENT, Body, Key, Values, as_given
from climate.compute.models.image import COMMUNITY, PRIVATE, PUBLIC, QUEUED, SHARED, Image
from climate.domain.errors import Conflict, Forbidden, InvalidInput

FORMATS = ("raw", "qcow2", "vhd", "vhdx", "vmdk", "vdi", "iso", "ploop", "aki", "ari", "ami")
CONTAINERS = ("bare", "ovf", "ova", "aki", "ari", "ami", "docker", "compressed")
VISIBILITIES = (PUBLIC, PRIVATE, SHARED, COMMUNITY)

READ_ONLY = frozenset(
    {"id", "status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value", "created_at"}
) | {"updated_at", "self", "file", "schema", "locations", "direct_url", "stores"}
"""Read-only keys of an image."""

MOST_PROPERTIES, MOST_TAGS = 128, 128
LONGEST = 65535

_POINTER = re.compile(r"/(?:[^~/]|~[01])+")
_GB, _MB = 1 << 20, 1 << 26


VERBS = ("add", "replace", "remove")
CHANGE = 'Each change must be like {"op": "add|replace|remove", "path": "/key", "value": "…"}'
OLD_CHANGE = 'Each change must be like {"replace": "/key", "value": "…"}, with add, replace or remove'

RESERVED = "os_glance_"
"""Beginning of the names of properties that only the image service may set."""


def _name(value: object, field: str) -> str:
    return "" if value in (None, "") else validation.name(value, field)


def _visibility(value: object, field: str) -> str:
    if value not in VISIBILITIES:
        raise InvalidInput(f"{field} must be one of {', '.join(VISIBILITIES)}")
    if value == PUBLIC and not caller().is_admin:
        raise Forbidden("Only administrators make images public.")
    return str(value)


def _owner(value: object, field: str) -> str:
    owner = validation.name(value, field)
    if not caller().is_admin:
        raise Forbidden("Only administrators change the owner of an image.")
    return owner


def _format_key(*words: str) -> Key:
    """Return a key whose value is one of these words or null."""

    def read(value: object, field: str) -> str:
        if value not in words:
            raise InvalidInput(f"{field} must be one of {', '.join(words)}")
        return str(value)

    return Key(read, shapes.one_of(*words), default=ABSENT).or_null()


def _flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{field} must be true or false")
    return value


def _tags(value: object, field: str) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_TAGS:
        raise InvalidInput(f"{field} must be a list of at most {MOST_TAGS} texts")
    return tuple(sorted({tag(text) for text in value}))


class Attributes(Body):
    """Attributes of an image; every other key that is not read-only is a property."""

    IS_OPEN = True

    name = Key(_name, shapes.or_null(shapes.name()), default=ABSENT)
    visibility = Key(_visibility, shapes.one_of(*VISIBILITIES), default=ABSENT)
    disk_format = _format_key(*FORMATS)
    container_format = _format_key(*CONTAINERS)
    min_disk_gb = keys.count(0, _GB, key="min_disk", default=ABSENT)
    min_ram_mb = keys.count(0, _MB, key="min_ram", default=ABSENT)
    protected = Key(_flag, shapes.flag(), default=ABSENT)
    hidden = Key(_flag, shapes.flag(), key="os_hidden", default=ABSENT)
    tags = Key(_tags, shapes.listing(shapes.name(), MOST_TAGS), default=ABSENT)
    project_id = Key(_owner, shapes.name(), key="owner", default=ABSENT)


class NewImage(Body):
    """Id and owner of a new image, which only administrators choose; other keys are attributes and properties."""

    IS_OPEN = True

    id = keys.uuid(default=ABSENT)
    owner = keys.name(default=ABSENT)


def _path(value: object, field: str) -> str:
    if not isinstance(value, str) or not _POINTER.fullmatch(value):
        raise InvalidInput(CHANGE)
    return value[1:].replace("~1", "/").replace("~0", "~")


class Change(Body):
    """Change of one key by JSON patch."""

    IS_OPEN = True

    verb = keys.word(
        {verb: verb for verb in VERBS}, CHANGE.replace("{", "{{").replace("}", "}}"), key="op", required=True
    )
    path = Key(_path, shapes.text(pattern=r"^/([^~/]|~[01])+$"), required=True)
    value = Key(as_given, {}, default=ABSENT)


ATTRIBUTES, NEW, PATCH = Attributes(), NewImage(), Change()
KNOWN, CHOSEN = ATTRIBUTES.keys(), NEW.keys()


def new(body: Values) -> Image:
    """Return the image to create; InvalidInput, Forbidden."""
    body = {key: value for key, value in body.items() if value is not None}
    given = NEW.read(body)
    # Some clients send the owner; an administrator may set another one.
    owner = given.get("owner", caller().project_id)
    if owner != caller().project_id and not caller().is_admin:
        raise Forbidden("You are not permitted to create images for other projects.")
    first = Image(
        id=given.get("id") or str(uuid4()),
        name="",
        project_id=owner,
        status=QUEUED,
        visibility=SHARED,
        disk_format=None,
        container_format=None,
        size=None,
        sha512=None,
    )
    return _set(first, {key: value for key, value in body.items() if key not in CHOSEN})


def changed(image: Image, operations: object) -> Image:
    """Return the image after a JSON patch; InvalidInput, Forbidden, Conflict for keys that do not exist."""
    if not isinstance(operations, list) or len(operations) > 100:
        raise InvalidInput("The body must be a list of at most 100 changes")
    for operation in operations:
        image = _change(image, operation)
    return image


def of_old_patch(operations: object) -> object:
    """Return the changes of a patch of version 2.0 in the form of 2.1; what is no change stays as it is."""
    if not isinstance(operations, list):
        return operations
    return [_of_old(operation) if isinstance(operation, dict) else operation for operation in operations]


def _of_old(operation: Values) -> Values:
    verbs = [verb for verb in VERBS if verb in operation]
    if len(verbs) != 1 or operation.keys() - {*verbs, "value"}:
        raise InvalidInput(OLD_CHANGE)
    return {"op": verbs[0], "path": operation[verbs[0]], **{key: operation[key] for key in operation.keys() - {*verbs}}}


def tagged(image: Image, text: str) -> Image:
    """Return the image with one more tag; InvalidInput."""
    return _set(image, {"tags": [*image.tags, text]})


def check_names(names: Iterable[str]) -> None:
    """Raise Forbidden for the name of an attribute that nobody may set."""
    for name in names:
        if name in READ_ONLY:
            raise Forbidden(f"Attribute '{name}' is read-only.")
        if name.startswith(RESERVED):
            raise Forbidden(f"Attribute '{name[:80]}' is reserved.")


def check_properties(names: Iterable[str]) -> None:
    """Raise Forbidden for the name of a property that is the name of an attribute."""
    for name in names:
        if name in KNOWN:
            raise Forbidden(f"Attribute '{name}' is no property; set it by the Image API.")
    check_names(names)


def tag(text: object) -> str:
    """Return a tag of an image; InvalidInput."""
    return validation.name(text, "tag")


def _change(image: Image, operation: object) -> Image:
    if not isinstance(operation, dict):
        raise InvalidInput(CHANGE)
    given = PATCH.read(operation)
    key, verb = given["path"], given["verb"]
    if verb != "add" and key not in KNOWN and key not in READ_ONLY and key not in image.properties:
        raise Conflict(f"Property {key[:80]} does not exist.")
    if verb == "remove":
        return _without(image, key)
    if "value" not in given:
        raise InvalidInput(f"The change of {key[:80]} must have a value")
    return _set(image, {key: given["value"]})


def _without(image: Image, key: str) -> Image:
    if key in KNOWN or key in READ_ONLY:
        raise Forbidden(f"Property {key} cannot be removed.")
    return replace(image, properties={name: text for name, text in image.properties.items() if name != key})


def _set(image: Image, values: Values) -> Image:
    check_names(values)
    own = ATTRIBUTES.read(values)
    if image.status != QUEUED and {"disk_format", "container_format"} & own.keys():
        raise Forbidden("The format of an image with content cannot be changed.")
    properties = dict(image.properties) | _properties({key: values[key] for key in values if key not in KNOWN})
    if len(properties) > MOST_PROPERTIES:
        raise InvalidInput(f"An image has at most {MOST_PROPERTIES} properties")
    return replace(image, **own, properties=properties)


def _properties(values: Values) -> dict[str, str]:
    for key, value in values.items():
        if not isinstance(value, str) or len(value) > LONGEST or not 0 < len(key) <= validation.NAME_LENGTH:
            raise InvalidInput(f"{key[:80]!r} must be a text of at most {LONGEST} characters")
    return values
