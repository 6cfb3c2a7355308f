"""Failures of commands: a cause, a hint, and an exit code for scripts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypedDict

OK, ERROR, USAGE, NOT_FOUND, NOT_ALLOWED, CONFLICT, QUOTA, TIMEOUT, UNREACHABLE = range(9)

EXIT_CODES = {
    OK: "done",
    ERROR: "error",
    USAGE: "the command or its input is invalid",
    NOT_FOUND: "not found",
    NOT_ALLOWED: "not authenticated, or not allowed",
    CONFLICT: "conflict, or no capacity",
    QUOTA: "refused by a quota or a policy",
    TIMEOUT: "timeout",
    UNREACHABLE: "the server cannot be reached, or is too busy",
}

EXIT_OF_STATUS = {
    400: USAGE, 401: NOT_ALLOWED, 403: NOT_ALLOWED, 404: NOT_FOUND, 409: CONFLICT, 412: CONFLICT, 413: QUOTA,
    415: USAGE, 422: USAGE, 428: CONFLICT, 429: QUOTA, 502: UNREACHABLE, 503: UNREACHABLE, 504: UNREACHABLE,
}  # fmt: skip
"""HTTP status -> exit code; a status not listed is ERROR."""

HINTS = {
    400: "correct the named value; --help shows the accepted forms",
    401: "check the password of this cloud in clouds.yaml, or choose another one with --os-cloud",
    403: "repeat as a user with the required role (--os-cloud)",
    404: "the `list` command of the same group shows what there is",
    409: "remove what the message names, or request something else",
    412: "someone else changed it: show it again, then repeat",
    422: "use a new --idempotency-key for another request",
    429: "wait a little, then repeat",
    503: "wait a few seconds, then repeat; nothing was changed",
}


CONFLICTS = {
    "/maintenances": "choose another time, or --force: the leases get other hosts, or are degraded if none are free",
    "/moves": "wait until the leases end, or --force: they get other hosts if any are free",
    "DELETE /reservation/v1/os-hosts": "`climate host allocations HOST` shows its leases: wait for their end, "
    "or move them with `climate reservation reallocate`",
    "POST /reservation/v1/leases": "request less, other properties, or another time",
}
"""Beginning or part of a request -> hint for its 409."""

FITS_LATER = "it would fit"
"""Words of a refusal that has the time from which the request would fit."""

REPAIRS = ("climate journal rebuild", "climate event mend")
"""Messages with these commands are about forged or unreadable rows, and say themselves what to do."""


class Details(TypedDict, total=False):
    """Facts about a failure, for programs."""

    status: int
    request: str
    limit: object
    """Limit of the project that refused the request."""
    retry_after: str
    ids: list[str]
    """Ids of the resources between which the name does not decide."""
    seen: object
    """Last state of a resource that was waited for."""


@dataclass
class Failure(Exception):
    """A command that ends with another exit code than 0."""

    message: str
    code: int = ERROR
    hint: str = ""
    request_id: str = ""
    details: Details = field(default_factory=Details)

    def __str__(self) -> str:
        return self.message

    def text(self) -> str:
        """Return up to three lines for a terminal."""
        lines = [f"error: {self.message}"]
        lines += [f"try: {self.hint}"] if self.hint else []
        lines += [f"request id: {self.request_id}"] if self.request_id else []
        return "\n".join(lines)

    def json(self) -> str:
        """Return the same for a program: code, message, details, hint, request_id."""
        return json.dumps(
            {
                "code": self.code,
                "message": self.message,
                "details": dict(self.details),
                "hint": self.hint,
                "request_id": self.request_id,
            }
        )


def refusal(status: int, body: object, headers: Mapping[str, str], request: str) -> Failure:
    """Return the failure for an HTTP answer of 400 and above."""
    message = message_of(body) or f"the server answered {status}"
    code = EXIT_OF_STATUS.get(status, ERROR)
    limit = body.get("limit") if isinstance(body, dict) else None
    if status == 403 and (limit or "quota" in message.lower()):
        code = QUOTA
    details: Details = {"status": status, "request": request}
    if limit:
        details["limit"] = limit
    if headers.get("Retry-After"):
        details["retry_after"] = headers["Retry-After"]
    hint = "`climate limit list` shows the usage; request less, or ask an administrator for higher limits"
    return Failure(
        message,
        code,
        hint if limit else _hint(status, message, request),
        headers.get("x-openstack-request-id", ""),
        details,
    )


def _hint(status: int, message: str, request: str) -> str:
    if any(command in message for command in REPAIRS):
        return ""
    if status == 409 and FITS_LATER in message:
        return "request less, or the time in the message"
    fitting = next((says for word, says in CONFLICTS.items() if word in request), "") if status == 409 else ""
    return fitting or HINTS.get(status, "")


def failure_of(error: Exception) -> Failure | None:
    """Return the failure for an error of the engine; None for an unexpected one."""
    code = next((code for kind, code in _exits().items() if isinstance(error, kind)), None)
    return _of_database(error) if code is None else Failure(str(error), code)


def _of_database(error: Exception) -> Failure | None:
    """Return the failure for a database that does not answer; None for another error."""
    from sqlalchemy.exc import OperationalError

    if not isinstance(error, OperationalError) or not str(error.orig).strip():
        return None
    reason = str(error.orig).strip().splitlines()[0]
    return Failure(f"the database does not serve: {reason}", UNREACHABLE, "is the one of CLIMATE_DATABASE_URL running?")


def _exits() -> Mapping[type[Exception], int]:
    """Return error of the engine -> exit code, of which the first match counts; imported for a failure alone."""
    from climate.domain import errors
    from climate.embedded.errors import StoreError
    from climate.settings import SettingError

    return {
        errors.NotFound: NOT_FOUND,
        errors.Forbidden: NOT_ALLOWED,
        errors.NotAuthenticated: NOT_ALLOWED,
        errors.InvalidInput: USAGE,
        SettingError: USAGE,
        errors.Conflict: CONFLICT,
        errors.PreconditionFailed: CONFLICT,
        errors.Unavailable: UNREACHABLE,
        errors.ClimateError: ERROR,
        errors.UnreadableLease: ERROR,
        errors.UnreadableFact: ERROR,
        StoreError: ERROR,
    }


def message_of(body: object) -> str:
    """Return the message in an error body of any of the APIs, "" if there is none."""
    if isinstance(body, str):
        return body.strip().splitlines()[0][:500] if body.strip() else ""
    if not isinstance(body, dict):
        return ""
    for key in ("error_message", "message", "detail"):
        if isinstance(body.get(key), str):
            return str(body[key])
    inner = next((value for value in body.values() if isinstance(value, dict)), None)
    return message_of(inner) if inner else ""
