"""Routes of liveness, readiness, metrics and the OpenAPI document."""

from functools import partial

from flask import Blueprint, Response, current_app

from api.auth import public
from api.compute import metrics as cloud_figures
from api.compute.nodes import service_health
from api.openapi import document
from api.ops import metrics
from api.ops.request_counters import tally
from api.request_checks import answers
from api.request_context import caller, climate, deployment, disk_watch
from climate.domain.policy import METRICS, require
from climate.service import readiness

blueprint = Blueprint("ops", __name__)

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@blueprint.get("/healthz")
@public
def healthz() -> dict[str, str]:
    """Answer 200 if this process runs; checks nothing else."""
    return {"status": "ok"}


@blueprint.get("/readyz")
@public
def readyz() -> tuple[dict[str, object], int]:
    """Answer 200 if everything that CLIMATE_READY_NEEDS names works, else 503."""
    checks = readiness.readiness(climate(), disk=disk_watch())
    if checks[0].ok:
        checks += service_health.checks(deployment().compute)
    settings = climate().settings
    details = {check.name: {"ok": check.ok, "warns": check.warns, "detail": check.detail} for check in checks}
    if readiness.missing(checks, settings):
        return {"status": "not ready", "checks": details}, 503
    return {"status": "ready" if all(check.ok for check in checks) else "degraded", "checks": details}, 200


@blueprint.get("/metrics")
@answers("text/plain")
def figures() -> Response:
    """Return metrics for Prometheus, which signs in by HTTP Basic.

    The user is an administrator or has the role `service`: the metrics have figures of all projects.
    """
    require(caller(), METRICS)
    of_cloud = partial(cloud_figures.collect, deployment().compute)
    return Response(metrics.text(climate(), tally(current_app), of_cloud), content_type=PROMETHEUS)


@blueprint.get("/openapi.json")
@public
def openapi() -> dict[str, object]:
    """Return the OpenAPI document of the reservation API."""
    described: dict[str, object] = document(current_app).spec.to_dict()
    return described
