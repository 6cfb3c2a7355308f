"""Version documents and OpenAPI document of Compute, served without a token."""

from flask import Blueprint, current_app

from api.auth import public
from api.compute.microversion import HIGHEST, LOWEST, written
from api.compute.openapi import document
from api.request_context import deployment

blueprint = Blueprint("compute-discovery", __name__)


@blueprint.get("/compute")
@public
def versions() -> dict[str, object]:
    """List the only version."""
    return {"versions": [_version()]}


@blueprint.get("/compute/v2.1")
@public
def version() -> dict[str, object]:
    """Show the only version."""
    return {"version": _version()}


@blueprint.get("/compute/openapi.json")
@public
def described() -> dict[str, object]:
    """Return the OpenAPI document of Compute."""
    return document(current_app)


def _version() -> dict[str, object]:
    return {
        "id": "v2.1",
        "status": "CURRENT",
        "version": written(HIGHEST),
        "min_version": written(LOWEST),
        "updated": "2013-07-23T11:33:21Z",
        "links": [{"rel": "self", "href": f"{deployment().settings.base_url}/compute/v2.1"}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.compute+json;version=2.1"}],
    }
