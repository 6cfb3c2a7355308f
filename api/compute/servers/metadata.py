"""Metadata of servers, whole and by key."""

from collections.abc import Mapping

from api.body import read_object
from api.compute import metadata_keys, validation
from api.compute.blueprint import compute_blueprint
from api.compute.servers.attachment_bodies import METADATA
from api.compute.servers.servers import find, who
from api.request_context import compute
from climate.compute import server_operations
from climate.compute.servers.properties import Changed

Body = dict[str, object]

blueprint = compute_blueprint("server-metadata")


@blueprint.get("/servers/<server_id>/metadata")
def show(server_id: str) -> Body:
    """The metadata of a server."""
    return {"metadata": dict(find(server_id).metadata)}


@blueprint.post("/servers/<server_id>/metadata")
def add(server_id: str) -> Body:
    """Create or update keys of the metadata of a server."""
    given = _requested_metadata()
    return _changed(server_id, lambda there: {**there, **given})


@blueprint.put("/servers/<server_id>/metadata")
def replace(server_id: str) -> Body:
    """Replace the whole metadata of a server."""
    given = _requested_metadata()
    return _changed(server_id, lambda there: given)


@blueprint.get("/servers/<server_id>/metadata/<key>")
def show_key(server_id: str, key: str) -> Body:
    """One key of the metadata of a server."""
    return {"meta": metadata_keys.item(find(server_id).metadata, key)}


@blueprint.put("/servers/<server_id>/metadata/<key>")
def set_key(server_id: str, key: str) -> Body:
    """Set one key of the metadata of a server."""
    validation.may_write()
    given = metadata_keys.read_one(key)
    _changed(server_id, lambda there: {**there, **given})
    return {"meta": given}


@blueprint.delete("/servers/<server_id>/metadata/<key>")
def drop_key(server_id: str, key: str) -> tuple[str, int]:
    """Delete one key of the metadata of a server."""
    validation.may_write()
    _changed(server_id, lambda there: metadata_keys.without(there, key))
    return "", 204


def _requested_metadata() -> dict[str, str]:
    validation.may_write()
    metadata: dict[str, str] = METADATA.read(read_object())["metadata"]
    return metadata


def _changed(server_id: str, change: Changed) -> Body:
    def checked(there: Mapping[str, str]) -> dict[str, str]:
        return validation.metadata(dict(change(there)))

    return {"metadata": dict(server_operations.set_metadata(compute(), who(server_id), checked))}
