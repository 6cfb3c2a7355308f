"""Version documents and OpenAPI document of Network, served without a token."""

from flask import Blueprint, current_app

from api.auth import public
from api.compute.openapi import document
from api.network.openapi import NETWORK_API
from api.request_context import deployment

blueprint = Blueprint("network-discovery", __name__)


RESOURCES = {"network": "networks", "subnet": "subnets", "port": "ports", "floatingip": "floatingips"}
"""Name of a resource -> name of its collection."""


@blueprint.get("/network")
@public
def versions() -> dict[str, object]:
    """List the only version."""
    return {"versions": [{"id": "v2.0", "status": "CURRENT", "links": _links("")}]}


@blueprint.get("/network/v2.0")
@public
def version() -> dict[str, object]:
    """List the resources of the only version, as Neutron does; some clients look for the version itself here."""
    resources = [
        {"name": name, "collection": collection, "links": _links(collection)} for name, collection in RESOURCES.items()
    ]
    return {**versions(), "resources": resources}


def _links(path: str) -> list[dict[str, str]]:
    return [{"rel": "self", "href": f"{deployment().settings.base_url}/network/v2.0/{path}"}]


@blueprint.get("/network/openapi.json")
@public
def described() -> dict[str, object]:
    """Return the OpenAPI document of Network."""
    return document(current_app, NETWORK_API)
