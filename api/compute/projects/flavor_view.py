"""JSON views of flavors."""

from api.compute.microversion import since
from api.request_context import deployment
from climate.compute.models.flavor import Flavor

Body = dict[str, object]


def brief(flavor: Flavor) -> Body:
    """Return a flavor for a list without details."""
    base = deployment().settings.base_url
    links = [
        {"rel": "self", "href": f"{base}/compute/v2.1/flavors/{flavor.id}"},
        {"rel": "bookmark", "href": f"{base}/compute/flavors/{flavor.id}"},
    ]
    seen: Body = {"id": flavor.id, "name": flavor.name, "links": links}
    return seen | ({"description": flavor.description} if since(55) else {})


def full(flavor: Flavor) -> Body:
    """Return a flavor with all details."""
    seen = brief(flavor) | {
        "vcpus": flavor.vcpus,
        "ram": flavor.ram_mb,
        "disk": flavor.disk_gb,
        "swap": flavor.swap_mb or (0 if since(75) else ""),
        "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gb,
        "OS-FLV-DISABLED:disabled": False,
        "os-flavor-access:is_public": flavor.is_public,
        "rxtx_factor": 1.0,
    }
    return seen | ({"extra_specs": dict(flavor.extra_specs)} if since(61) else {})


def embedded(flavor: Flavor) -> Body:
    """Return the flavor as it is embedded in a server."""
    return {
        "vcpus": flavor.vcpus,
        "ram": flavor.ram_mb,
        "disk": flavor.disk_gb,
        "ephemeral": flavor.ephemeral_gb,
        "swap": flavor.swap_mb,
        "original_name": flavor.name,
        "extra_specs": dict(flavor.extra_specs),
    }
