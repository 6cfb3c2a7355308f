"""Health, readiness, figures and the OpenAPI document."""

from typing import Any

from flask import Blueprint, current_app

from api.auth import public
from api.document import document

blueprint = Blueprint("ops", __name__)


@blueprint.get("/healthz")
@public
def healthz() -> dict[str, str]:
    """This process answers; says nothing about anything else."""
    return {"status": "ok"}


@blueprint.get("/openapi.json")
@public
def openapi() -> dict[str, Any]:
    """The OpenAPI document of the reservation API."""
    described: dict[str, Any] = document(current_app).spec.to_dict()
    return described
