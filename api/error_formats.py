"""Error bodies of each API, in the form that its clients read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus


@dataclass(frozen=True, slots=True)
class Problem:
    """An error on its way to a client."""

    status: int
    message: str
    name: str
    """Kind of error, if the API shows it."""
    headers: Mapping[str, str] = field(default_factory=dict)
    framework: bool = False
    """Raised before any view: unknown route, method or content type."""
    foreseen: bool = True
    details: Mapping[str, object] = field(default_factory=dict)
    """The message in parts, for programs."""


Body = dict[str, object]

COMPUTE_KEYS = {
    400: "badRequest",
    401: "unauthorized",
    403: "forbidden",
    404: "itemNotFound",
    405: "badMethod",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    429: "overLimit",
    501: "notImplemented",
    503: "serviceUnavailable",
}
"""The one key of a compute error; any other status is a computeFault."""


def reservation(problem: Problem) -> Body:
    """Return a flat body, as Blazar does; errors of the framework have only two keys."""
    if problem.framework:
        return {"error": problem.status, "error_message": problem.message}
    name = problem.status if problem.foreseen else "INTERNAL_SERVER_ERROR"
    return {**problem.details, "error_code": problem.status, "error_message": problem.message, "error_name": name}


def compute(problem: Problem) -> Body:
    """Return a body with one key that names the kind, and code and message below it."""
    key = COMPUTE_KEYS.get(problem.status, "computeFault")
    return {key: {"code": problem.status, "message": problem.message}}


def identity(problem: Problem) -> Body:
    """Return a body with `error` and the title of the status."""
    return {"error": {"code": problem.status, "title": _title(problem.status), "message": problem.message}}


def network(problem: Problem) -> Body:
    """Return a body with `NeutronError` and the kind of error."""
    return {"NeutronError": {"type": problem.name, "message": problem.message, "detail": ""}}


SHAPES: Mapping[str, Callable[[Problem], Body]] = {
    "reservation": reservation,
    "compute": compute,
    "identity": identity,
    "image": identity,
    "network": network,
    "volume": compute,
}
"""First word of the path -> the function that builds the API's error body."""


def body_of(path: str, problem: Problem) -> Body:
    """Return the error body for `path`; without a token all APIs answer like Keystone's middleware."""
    if problem.status == 401:
        return identity(problem)
    return SHAPES.get(path.lstrip("/").partition("/")[0], reservation)(problem)


def _title(status: int) -> str:
    return HTTPStatus(status).phrase
