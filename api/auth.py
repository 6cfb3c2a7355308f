"""Authentication of requests: without a token only discovery and health are served."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from flask import Flask, Response, current_app, g, request
from structlog.contextvars import bind_contextvars

from api.rate_limit import Allowance
from api.request_context import DEPLOYMENT, deployment, is_authenticated
from climate.configuration import policy_file
from climate.domain.errors import Forbidden
from climate.identity.authentication.request_authentication import Headers

ALLOWANCE = "climate.allowance"
"""Key of the rate limit among the application's extensions."""

TOKENS = "climate.tokens"
"""Key of the rate limit for exchanging and revoking tokens."""

PER_TOKEN = 20
"""Requests that are allowed for each exchange or revocation of a token."""

CALENDARS = "climate.calendars"
"""Key of the rate limit for reading calendar feeds, which needs no token and counts by address."""

PER_CALENDAR = 20
"""Requests that are allowed for each read of a calendar feed."""

POLICY = "climate.policy"
"""Key of the policy."""

View = TypeVar("View", bound=Callable[..., object])


def public(view: View) -> View:
    """Mark a view that needs no token."""
    view.public = True  # type: ignore[attr-defined]
    return view


def by_session(view: View) -> View:
    """Mark a view of a page, whose blueprint authenticates by the session of the browser instead of a token."""
    view.by_session = True  # type: ignore[attr-defined]
    return view


def install(app: Flask) -> None:
    """Require a token before every view that is not public, and keep the answers to its holder private."""
    app.before_request(_let_in)
    app.after_request(_forbid_caching)


def allow(app: Flask) -> None:
    """Start serving requests with the rate limit and the policy of the deployment."""
    settings = app.extensions[DEPLOYMENT].settings
    app.extensions[ALLOWANCE] = Allowance(settings.requests_per_second)
    app.extensions[TOKENS] = Allowance(settings.requests_per_second / PER_TOKEN, noun="tokens")
    app.extensions[CALENDARS] = Allowance(settings.requests_per_second / PER_CALENDAR, noun="reads of calendars")
    app.extensions[POLICY] = policy_file.read(settings)


def _let_in() -> None:
    view = current_app.view_functions.get(request.endpoint or "")
    if view is not None and not (getattr(view, "public", False) or getattr(view, "by_session", False)):
        admit(request.headers)


def _forbid_caching(response: Response) -> Response:
    """Forbid caches to keep what one caller was told: they would not distinguish callers by X-Auth-Token."""
    if is_authenticated():
        response.headers.setdefault("Cache-Control", "no-store")
    return response


def admit(headers: Headers) -> None:
    """Keep the caller of these headers for the view, and count the request against the caller's rate limit."""
    caller = deployment().identity.authenticate(headers, request.remote_addr or "")
    if caller.is_system and not request.path.startswith("/identity/"):
        raise Forbidden("This service needs a token of a project, and the token is one of the whole system")
    if not caller.is_admin:
        current_app.extensions[ALLOWANCE].spend(caller.user_id)
    g.caller = replace(caller, request_id=g.request_id, policy=current_app.extensions[POLICY])
    bind_contextvars(user=caller.user_id, project=caller.project_id)
