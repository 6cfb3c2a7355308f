"""Identity of other software: each path below /identity answers where its API is."""

from flask import Blueprint, current_app

from api.auth import public
from api.request_context import IDENTITY_URL
from climate.domain.errors import NotFound

blueprint = Blueprint("identity-external", __name__)

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@blueprint.route("/identity", methods=METHODS, defaults={"path": ""})
@blueprint.route("/identity/<path:path>", methods=METHODS)
@public
def elsewhere(path: str) -> dict[str, object]:
    """Answer 404 with the URL of the identity service."""
    url = current_app.config[IDENTITY_URL]
    raise NotFound(f"Users, projects and tokens of this deployment are Keystone's: use {url}")
