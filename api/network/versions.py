"""Version documents and OpenAPI document of Network, served without a token."""

from flask import Blueprint, current_app

from api.auth import public
from api.compute.openapi import document
from api.network.openapi import FACE
from api.request_context import deployment

blueprint = Blueprint("network-discovery", __name__)


@blueprint.get("/network")
@blueprint.get("/network/v2.0")
@public
def versions() -> dict[str, object]:
    """List the only version."""
    href = f"{deployment().settings.base_url}/network/v2.0/"
    return {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}]}


@blueprint.get("/network/openapi.json")
@public
def described() -> dict[str, object]:
    """Return the OpenAPI document of Network."""
    return document(current_app, FACE)
