"""Validation of images in requests: creation, and changes by JSON patch."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

from api.compute import validation
from api.request_context import caller
from climate.compute.models.image import COMMUNITY, PRIVATE, PUBLIC, QUEUED, SHARED, Image
from climate.domain.errors import Conflict, Forbidden, InvalidInput

Body = dict[str, Any]

FORMATS = ("raw", "qcow2", "vhd", "vhdx", "vmdk", "vdi", "iso", "ploop", "aki", "ari", "ami")
CONTAINERS = ("bare", "ovf", "ova", "aki", "ari", "ami", "docker", "compressed")
VISIBILITIES = (PUBLIC, PRIVATE, SHARED, COMMUNITY)

READ_ONLY = frozenset(
    {"id", "owner", "status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value", "created_at"}
) | {"updated_at", "self", "file", "schema", "locations", "direct_url", "stores"}
"""Read-only keys of an image."""

MOST_PROPERTIES, MOST_TAGS = 128, 128
LONGEST = 65535

_POINTER = re.compile(r"/(?:[^~/]|~[01])+")
_GB, _MB = 1 << 20, 1 << 26


def new(body: Body) -> Image:
    """Return the image to create; InvalidInput, Forbidden."""
    body = {key: value for key, value in body.items() if value is not None}
    # Some clients send the owner; an administrator may set another one.
    owner = body.pop("owner", caller().project_id)
    if owner != caller().project_id and not caller().is_admin:
        raise Forbidden("You are not permitted to create images for other projects.")
    first = Image(
        id=validation.uuid(body.pop("id"), "id") if "id" in body else str(uuid4()),
        name="",
        project_id=validation.name(owner, "owner"),
        status=QUEUED,
        visibility=SHARED,
        disk_format=None,
        container_format=None,
        size=None,
        sha512=None,
    )
    return _set(first, body)


def changed(image: Image, operations: Any) -> Image:
    """Return the image after a JSON patch; InvalidInput, Forbidden, Conflict for keys that do not exist."""
    if not isinstance(operations, list) or len(operations) > 100:
        raise InvalidInput("The body must be a list of at most 100 changes")
    for operation in operations:
        image = _change(image, operation)
    return image


def tagged(image: Image, text: str) -> Image:
    """Return the image with one more tag; InvalidInput."""
    return changed(image, [{"op": "replace", "path": "/tags", "value": [*image.tags, text]}])


def tag(text: Any) -> str:
    """Return a tag of an image; InvalidInput."""
    return validation.name(text, "tag")


def _change(image: Image, operation: Any) -> Image:
    path = operation.get("path") if isinstance(operation, dict) else None
    verb = operation.get("op") if isinstance(operation, dict) else None
    if not isinstance(path, str) or not _POINTER.fullmatch(path) or verb not in ("add", "replace", "remove"):
        raise InvalidInput('Each change must be like {"op": "add|replace|remove", "path": "/key", "value": "…"}')
    key = path[1:].replace("~1", "/").replace("~0", "~")
    if verb != "add" and key not in KNOWN and key not in READ_ONLY and key not in image.properties:
        raise Conflict(f"Property {key[:80]} does not exist.")
    if verb == "remove":
        return _without(image, key)
    if "value" not in operation:
        raise InvalidInput(f"The change of {key[:80]} must have a value")
    return _set(image, {key: operation["value"]})


def _without(image: Image, key: str) -> Image:
    if key in KNOWN or key in READ_ONLY:
        raise Forbidden(f"Property {key} cannot be removed.")
    return replace(image, properties={name: text for name, text in image.properties.items() if name != key})


def _set(image: Image, values: Mapping[str, Any]) -> Image:
    own: Body = {}
    for key, value in values.items():
        if key in READ_ONLY:
            raise Forbidden(f"Attribute '{key}' is read-only.")
        if key in KNOWN:
            field, read = KNOWN[key]
            own[field] = read(key, value)
    if image.status != QUEUED and {"disk_format", "container_format"} & own.keys():
        raise Forbidden("The format of an image with content cannot be changed.")
    properties = dict(image.properties) | _properties({key: values[key] for key in values if key not in KNOWN})
    if len(properties) > MOST_PROPERTIES:
        raise InvalidInput(f"An image has at most {MOST_PROPERTIES} properties")
    return replace(image, **own, properties=properties)


def _properties(found: Body) -> dict[str, str]:
    for key, value in found.items():
        if not isinstance(value, str) or len(value) > LONGEST or not 0 < len(key) <= validation.NAME_LENGTH:
            raise InvalidInput(f"{key[:80]!r} must be a text of at most {LONGEST} characters")
    return found


def _name(key: str, value: Any) -> str:
    return "" if value in (None, "") else validation.name(value, key)


def _visibility(key: str, value: Any) -> str:
    if value not in VISIBILITIES:
        raise InvalidInput(f"{key} must be one of {', '.join(VISIBILITIES)}")
    if value == PUBLIC and not caller().is_admin:
        raise Forbidden("Only administrators make images public.")
    return str(value)


def _one_of(*words: str) -> Callable[[str, Any], str | None]:
    def read(key: str, value: Any) -> str | None:
        if value is not None and value not in words:
            raise InvalidInput(f"{key} must be one of {', '.join(words)}")
        return None if value is None else str(value)

    return read


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{key} must be true or false")
    return value


def _tags(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_TAGS:
        raise InvalidInput(f"{key} must be a list of at most {MOST_TAGS} texts")
    return tuple(sorted({tag(text) for text in value}))


KNOWN: Mapping[str, tuple[str, Callable[[str, Any], Any]]] = {
    "name": ("name", _name),
    "visibility": ("visibility", _visibility),
    "disk_format": ("disk_format", _one_of(*FORMATS)),
    "container_format": ("container_format", _one_of(*CONTAINERS)),
    "min_disk": ("min_disk_gb", lambda key, value: validation.count(value, key, 0, _GB)),
    "min_ram": ("min_ram_mb", lambda key, value: validation.count(value, key, 0, _MB)),
    "protected": ("protected", _flag),
    "os_hidden": ("hidden", _flag),
    "tags": ("tags", _tags),
}
"""Key -> (field of an image, how its value is read).  Every other key that is not read-only is a property."""
