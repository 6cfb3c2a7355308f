"""Version documents of Image, served without a token."""

from flask import Blueprint

from api.auth import public
from api.request_context import deployment

blueprint = Blueprint("image-discovery", __name__)


@blueprint.get("/image")
@blueprint.get("/image/versions")
@blueprint.get("/image/v2")
@public
def versions() -> tuple[dict[str, object], int]:
    """List the only version."""
    href = f"{deployment().settings.base_url}/image/v2/"
    return {"versions": [{"id": "v2.9", "status": "CURRENT", "links": [{"rel": "self", "href": href}]}]}, 300
