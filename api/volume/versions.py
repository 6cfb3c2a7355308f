"""Version documents of Block Storage, served without a token."""

from flask import Blueprint

from api.auth import public
from api.request_context import deployment

blueprint = Blueprint("volume-discovery", __name__)


@blueprint.get("/volume")
@blueprint.get("/volume/v3")
@public
def versions() -> dict[str, object]:
    """List the only version, which has no microversions."""
    href = f"{deployment().settings.base_url}/volume/v3/"
    links = [{"rel": "self", "href": href}]
    return {"versions": [{"id": "v3.0", "status": "CURRENT", "version": "3.0", "min_version": "3.0", "links": links}]}
