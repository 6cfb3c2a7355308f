"""What the request at hand works with: the deployment, the engine's context and who is asking."""

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
"""Where the deployment stands among the app's extensions."""

DISK_WATCH = "climate.disk"
"""Where it stands what the process knows of full disks."""


def deployment() -> "Deployment":
    """Everything that this process was built with."""
    return cast("Deployment", current_app.extensions[DEPLOYMENT])


def climate() -> Climate:
    """The engine's context."""
    engine: Climate = deployment().climate
    return engine


def disk_watch() -> DiskWatch:
    """What this process knows of disks that are full."""
    return cast(DiskWatch, current_app.extensions[DISK_WATCH])


def compute() -> Compute:
    """The bundled cloud's context."""
    return deployment().compute


def identity() -> Identity:
    """The identity service."""
    service: Identity = deployment().identity
    return service


def here() -> str:
    """The URL of the request at hand, without its query, as clients know it: whatever name they or a proxy sent."""
    return f"{deployment().settings.base_url}{request.path}"


def caller() -> Caller:
    """Who is asking, as the auth front found out; only views that are not public may ask."""
    return cast(Caller, g.caller)


def request_id() -> str:
    """`req-<uuid>`, one per request: in the answer's header and on every log line of it."""
    return cast(str, g.request_id)
