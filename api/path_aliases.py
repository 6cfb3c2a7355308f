"""Path aliases: alternative spellings of a path, rewritten before routing."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from flask import Flask, request
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

from api.request_context import caller, is_authenticated
from climate.domain.errors import InvalidInput

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from werkzeug.routing import Map

RESERVATION = "/reservation"
V1 = f"{RESERVATION}/v1/"
SUFFIX = ".json"
DISCOVERY = ("/", "/versions")
"""Paths of the version document if the endpoint of the reservation API is the root URL."""

PAGES = "/ui/"
"""Path of the first page, which `/` shows to browsers."""

ASKED = "climate.asked_path"
"""Key of the WSGI environment for the path as it was requested."""

PROJECT = "climate.path_project"
"""Key of the WSGI environment for the project that the path named."""

CALENDAR = "calendar"
"""Word of the reservation API before the secret of a calendar feed."""

LONGEST_SHOWN = 80


def canonical(path: str) -> str:
    """Return the canonical path: `/v1/leases`, `/v1/leases.json` -> `/reservation/v1/leases`."""
    if path in DISCOVERY:
        return RESERVATION
    if path == "/v1" or path.startswith("/v1/"):
        path = RESERVATION + path
    if path.startswith(f"{RESERVATION}/"):
        path = path.removesuffix(SUFFIX)
    return path


def prefers_pages(environ: "WSGIEnvironment") -> bool:
    """Return whether a client prefers HTML to JSON, as browsers do; `*/*` is no preference."""
    accepted = parse_accept_header(environ.get("HTTP_ACCEPT"), MIMEAccept)
    return accepted["text/html"] > accepted["application/json"]


def without_secret(path: str) -> str:
    """Return a path without the secret of a calendar feed, for logs: who has the secret needs no token."""
    before, word, rest = path.partition(f"/{CALENDAR}/")
    return f"{before}{word}…" if rest else path


def nouns(routes: "Map") -> frozenset[str]:
    """Return the words that follow `/reservation/v1/` in the routes."""
    words = {rule.rule.removeprefix(V1).partition("/")[0] for rule in routes.iter_rules() if rule.rule.startswith(V1)}
    return frozenset(words - {""})


def without_project(path: str, known: Collection[str]) -> tuple[str, str | None]:
    """Split `/reservation/v1/<project>/leases` into `/reservation/v1/leases` and the project; other paths have None.

    A word is a project if it is none of the `known` nouns and one of these follows it.
    """
    project, _, rest = path.removeprefix(V1).partition("/")
    if not path.startswith(V1) or not project or project in known or rest.partition("/")[0] not in known:
        return path, None
    return V1 + rest, project


def install(app: Flask) -> None:
    """Refuse paths that name another project than the token does; call it after the install of `api.auth`."""
    app.before_request(_check_project)


def _check_project() -> None:
    named = request.environ.get(PROJECT)
    if named is None or request.endpoint is None or not is_authenticated():
        return
    own = caller().project_id
    if named != own:
        raise InvalidInput(
            f"Malformed request URL: the URL's project_id {named[:LONGEST_SHOWN]!r} "
            f"does not match the project_id {own!r} of the token"
        )


class Paths:
    """WSGI middleware that passes canonical paths to the application.  `known` are the nouns of the reservation API."""

    def __init__(self, app: "WSGIApplication", known: Collection[str]) -> None:
        self.app = app
        self.known = known

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        asked = environ.get("PATH_INFO", "")
        found = PAGES if asked == "/" and prefers_pages(environ) else canonical(asked)
        path, project = without_project(found, self.known)
        environ[ASKED] = asked
        environ["PATH_INFO"] = path
        environ[PROJECT] = project
        return self.app(environ, start_response)
