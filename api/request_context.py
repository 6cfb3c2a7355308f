"""Request context: the deployment, the engine's context and the caller."""

from typing import TYPE_CHECKING, cast

from flask import current_app, g, request

from climate.compute import Compute
from climate.context import Climate
from climate.domain.policy import Caller
from climate.identity import Identity
from climate.service.disk_space import DiskWatch

if TYPE_CHECKING:
    from climate.bootstrap import Deployment

DEPLOYMENT = "climate"
"""Key of the deployment among the app's extensions."""

DISK_WATCH = "climate.disk"
"""Key of the record of full disks."""


IDENTITY_URL = "IDENTITY_URL"
"""Key of the URL of Identity v3 in the app's configuration."""


def deployment() -> "Deployment":
    """Return the deployment that this process serves."""
    return cast("Deployment", current_app.extensions[DEPLOYMENT])


def climate() -> Climate:
    """Return the engine's context."""
    engine: Climate = deployment().climate
    return engine


def disk_watch() -> DiskWatch:
    """Return the record of full disks that this process keeps."""
    return cast(DiskWatch, current_app.extensions[DISK_WATCH])


def compute() -> Compute:
    """Return the bundled cloud's context."""
    return deployment().compute


def identity() -> Identity:
    """Return the identity service."""
    service: Identity = deployment().identity
    return service


def here() -> str:
    """Return the URL of this request without its query, with the host name that the client or a proxy sent."""
    return f"{deployment().settings.base_url}{request.path}"


def caller() -> Caller:
    """Return the caller that authentication found; only views that are not public may call it."""
    return cast(Caller, g.caller)


def is_authenticated() -> bool:
    """Return whether this request has a caller; one for a public view has none."""
    return "caller" in g


def request_id() -> str:
    """Return `req-<uuid>`, the id of this request in the answer's header and in each log line."""
    return cast(str, g.request_id)
