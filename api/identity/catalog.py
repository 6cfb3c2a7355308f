"""Service catalog: the URL of each service, in the forms that all OpenStack clients accept."""

from typing import Any
from uuid import NAMESPACE_URL, uuid5

from flask import Blueprint

from api.identity.views import listing
from api.request_context import deployment
from climate.domain.errors import NotFound
from climate.identity.clouds import REGION

SERVICES = (
    ("identity", "climate-identity", "/identity/v3"),
    # The plain `nova` reads the version at this very URL, and hard-codes /v2/images and /v2.0/networks for the others.
    ("compute", "climate-compute", "/compute/v2.1"),
    ("reservation", "climate", "/reservation/v1"),
    ("image", "climate-image", "/image"),
    ("network", "climate-network", "/network"),
    ("volumev3", "climate-volume", "/volume/v3"),
)
"""Type, name and path."""

INTERFACES = ("public", "internal", "admin")

blueprint = Blueprint("identity-catalog", __name__, url_prefix="/identity/v3")


def catalog(base_url: str) -> list[dict[str, Any]]:
    """Return the catalog as tokens contain it."""
    return [
        {
            "id": _id(kind),
            "type": kind,
            "name": name,
            "endpoints": [
                {
                    "id": _id(kind, interface),
                    "interface": interface,
                    "region": REGION,
                    "region_id": REGION,
                    "url": base_url + path,
                }
                for interface in INTERFACES
            ],
        }
        for kind, name, path in SERVICES
    ]


def _id(*words: str) -> str:
    return uuid5(NAMESPACE_URL, "/".join(("climate", *words))).hex


@blueprint.get("/services")
def services() -> dict[str, Any]:
    return listing("services", [{**_service(one), "enabled": True} for one in _catalog()])


@blueprint.get("/services/<service_id>")
def service(service_id: str) -> dict[str, Any]:
    result = [{**_service(one), "enabled": True} for one in _catalog() if one["id"] == service_id]
    if not result:
        raise NotFound(f"Could not find service: {service_id[:80]}.")
    return {"service": result[0]}


@blueprint.get("/endpoints")
def endpoints() -> dict[str, Any]:
    result = [
        {**endpoint, "service_id": one["id"], "enabled": True} for one in _catalog() for endpoint in one["endpoints"]
    ]
    return listing("endpoints", result)


@blueprint.get("/regions")
def regions() -> dict[str, Any]:
    return listing("regions", [{"id": REGION, "description": "", "parent_region_id": None}])


@blueprint.get("/auth/catalog")
def own_catalog() -> dict[str, Any]:
    return listing("catalog", _catalog())


def _catalog() -> list[dict[str, Any]]:
    return catalog(deployment().settings.base_url)


def _service(one: dict[str, Any]) -> dict[str, Any]:
    return {key: one[key] for key in ("id", "type", "name")}
