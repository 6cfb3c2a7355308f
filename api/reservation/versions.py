"""Version document of the reservation API, served without a token."""

from marshmallow import Schema, fields

from api.openapi import Blueprint
from api.request_context import deployment
from api.reservation.view_decorator import Operation, serve

blueprint = Blueprint("versions", __name__, url_prefix="/reservation", description="API versions.")


class Link(Schema):
    href = fields.String(required=True)
    rel = fields.String(required=True)


class VersionOut(Schema):
    id = fields.String(required=True)
    status = fields.String(required=True)
    min_version = fields.String(required=True)
    max_version = fields.String(required=True)
    links = fields.List(fields.Nested(Link), required=True)


class Versions(Schema):
    versions = fields.List(fields.Nested(VersionOut), required=True)


@serve(blueprint, "GET", "", Operation(None, {300: Versions}))
def choices(query: object) -> tuple[dict[str, object], int]:
    """List the only version."""
    return _document(), 300


@serve(blueprint, "GET", "/versions", Operation(None, {300: Versions}))
def choices_by_name(query: object) -> tuple[dict[str, object], int]:
    """List the only version, under Blazar's second path."""
    return _document(), 300


@serve(blueprint, "GET", "/v1", Operation(None, {200: Versions}))
def version(query: object) -> dict[str, object]:
    """Show the only version."""
    return _document()


def _document() -> dict[str, object]:
    href = f"{deployment().settings.base_url}/reservation/v1"
    known = {
        "id": "v1.0",
        "status": "CURRENT",
        "links": [{"href": href, "rel": "self"}],
        "min_version": "1.0",
        "max_version": "1.0",
    }
    return {"versions": [known]}
