"""Version documents of Identity, served without a token."""

from flask import Blueprint

from api.auth import public
from api.request_context import deployment

blueprint = Blueprint("identity-discovery", __name__)


@blueprint.get("/identity")
@public
def versions() -> tuple[dict[str, object], int]:
    """List the only version."""
    return {"versions": {"values": [_version()]}}, 300


@blueprint.get("/identity/v3")
@public
def version() -> dict[str, object]:
    """Show the only version."""
    return {"version": _version()}


def _version() -> dict[str, object]:
    href = f"{deployment().settings.base_url}/identity/v3/"
    return {
        "id": "v3.14",
        "status": "stable",
        "updated": "2020-04-07T00:00:00Z",
        "links": [{"rel": "self", "href": href}],
        "media-types": [{"base": "application/json", "type": "application/vnd.openstack.identity-v3+json"}],
    }
