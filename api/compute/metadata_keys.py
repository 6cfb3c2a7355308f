"""Single keys of metadata in requests, the same for servers and images."""

from collections.abc import Mapping

from api.body import read_object
from api.compute.servers.attachment_bodies import META
from climate.domain.errors import InvalidInput, NotFound


def read_one(key: str) -> dict[str, str]:
    """Return the body of a request for one key, with its value. Raise InvalidInput if it has another key."""
    given: dict[str, str] = META.read(read_object())["meta"]
    if list(given) != [key]:
        raise InvalidInput(f"meta must have exactly the key in the path, {key[:80]!r}")
    return given


def item(metadata: Mapping[str, str], key: str) -> dict[str, str]:
    """Return one key with its value. Raise NotFound if there is none."""
    _check_has(metadata, key)
    return {key: metadata[key]}


def without(metadata: Mapping[str, str], key: str) -> dict[str, str]:
    """Return the other keys with their values. Raise NotFound if the key is not there."""
    _check_has(metadata, key)
    return {name: value for name, value in metadata.items() if name != key}


def _check_has(metadata: Mapping[str, str], key: str) -> None:
    if key not in metadata:
        raise NotFound("Metadata item was not found")
