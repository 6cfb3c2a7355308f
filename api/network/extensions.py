"""Extensions of the Network API."""

from flask import Blueprint

from climate.domain.errors import NotFound

Body = dict[str, object]

blueprint = Blueprint("network-extensions", __name__, url_prefix="/network/v2.0")

UPDATED = "2026-11-21T00:00:00-00:00"

EXTENSIONS = {
    "external-net": "External networks, whose addresses are floating IPs.",
    "provider": "Provider attributes of networks, for administrators.",
    "quotas": "Quotas of floating IPs and ports of projects.",
    "quota_details": "Usage of floating IPs and ports of projects.",
    "network-ip-availability": "Usage of addresses of networks.",
    "ip-substring-filtering": "Lists of ports by a part of an address.",
    "binding": "Hosts of ports, for administrators.",
    "security-group": "Security groups and their rules.",
    "subnet-external-network": "Subnets of external networks, which all projects see.",
    "agent": "Network services, read-only.",
}


@blueprint.get("/extensions")
def listing() -> Body:
    """List the extensions."""
    return {"extensions": _all()}


@blueprint.get("/extensions/<alias>")
def show(alias: str) -> Body:
    """Show one extension."""
    extension = next((row for row in _all() if row["alias"] == alias), None)
    if extension is None:
        raise NotFound(f"Extension with alias {alias[:80]} could not be found.")
    return {"extension": extension}


def _all() -> list[Body]:
    return [
        {"alias": alias, "name": alias, "description": says, "updated": UPDATED, "links": []}
        for alias, says in EXTENSIONS.items()
    ]
