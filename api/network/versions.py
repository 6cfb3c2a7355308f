"""Version documents of network, served without a token."""

from typing import Any

from flask import Blueprint

from api.auth import public
from api.current import deployment

blueprint = Blueprint("network-discovery", __name__)


@blueprint.get("/network")
@blueprint.get("/network/v2.0")
@public
def versions() -> dict[str, Any]:
    """All versions: there is one."""
    href = f"{deployment().settings.base_url}/network/v2.0/"
    return {"versions": [{"id": "v2.0", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}]}
