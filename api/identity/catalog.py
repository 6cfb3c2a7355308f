"""Service catalog: the URL of each service, in the forms that all OpenStack clients accept."""

from collections.abc import Mapping
from typing import Any, NoReturn
from uuid import NAMESPACE_URL, uuid5

from flask import Blueprint
from werkzeug.exceptions import NotImplemented as NoSuchThing

from api.identity.views import listing
from api.request_context import caller, deployment
from climate.domain.errors import NotFound
from climate.domain.policy import require
from climate.identity.clouds_yaml import REGION

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
ONE_REGION: dict[str, object] = {"id": REGION, "description": "", "parent_region_id": None}

blueprint = Blueprint("identity-catalog", __name__, url_prefix="/identity/v3")


def catalog(base_url: str) -> list[dict[str, object]]:
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
def services() -> dict[str, object]:
    return listing("services", [{**_service(one), "enabled": True} for one in _catalog()])


@blueprint.get("/services/<service_id>")
def service(service_id: str) -> dict[str, object]:
    result = [{**_service(one), "enabled": True} for one in _catalog() if one["id"] == service_id]
    if not result:
        raise NotFound(f"Could not find service: {service_id[:80]}.")
    return {"service": result[0]}


@blueprint.get("/endpoints")
def endpoints() -> dict[str, object]:
    return listing("endpoints", _endpoints())


@blueprint.get("/endpoints/<endpoint_id>")
def endpoint(endpoint_id: str) -> dict[str, object]:
    result = [one for one in _endpoints() if one["id"] == endpoint_id]
    if not result:
        raise NotFound(f"Could not find endpoint: {endpoint_id[:80]}.")
    return {"endpoint": result[0]}


@blueprint.get("/regions")
def regions() -> dict[str, object]:
    return listing("regions", [ONE_REGION])


@blueprint.get("/regions/<region_id>")
def region(region_id: str) -> dict[str, object]:
    if region_id != REGION:
        raise NotFound(f"Could not find region: {region_id[:80]}.")
    return {"region": ONE_REGION}


@blueprint.route("/services", methods=["POST"])
@blueprint.route("/endpoints", methods=["POST"])
@blueprint.route("/regions", methods=["POST"])
@blueprint.route("/services/<_service_id>", methods=["PATCH", "DELETE"])
@blueprint.route("/endpoints/<_endpoint_id>", methods=["PATCH", "DELETE"])
@blueprint.route("/regions/<_region_id>", methods=["PUT", "PATCH", "DELETE"])
def change(**_path: str) -> NoReturn:
    """Refuse a change with 501, as Keystone does whose catalog is a template."""
    require(caller(), "identity:admin")
    raise NoSuchThing("The catalog follows from CLIMATE_PUBLIC_URL, and cannot be changed")


@blueprint.get("/auth/catalog")
def own_catalog() -> dict[str, object]:
    return listing("catalog", _catalog())


def _catalog() -> list[dict[str, Any]]:
    return catalog(deployment().settings.base_url)


def _endpoints() -> list[dict[str, object]]:
    return [
        {**endpoint, "service_id": one["id"], "enabled": True} for one in _catalog() for endpoint in one["endpoints"]
    ]


def _service(one: Mapping[str, object]) -> dict[str, object]:
    return {key: one[key] for key in ("id", "type", "name")}
