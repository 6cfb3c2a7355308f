"""Blueprint of all pages: the decorator of a view, and what every request passes before it."""

from collections.abc import Callable
from typing import TypeVar
from urllib.parse import quote

from flask import Blueprint, Response, current_app, g, redirect, request
from flask.typing import ResponseReturnValue
from werkzeug.exceptions import NotFound

from api import auth, errors
from api.request_context import caller, climate, is_authenticated
from api.web import error_pages, protection, sessions
from climate.domain import policy
from climate.domain.errors import NotAuthenticated
from climate.service.journal import changes

PREFIX = "/ui"
"""Beginning of the paths of all pages; `/` is an alias of `/ui/` for browsers."""
HOME, SIGN_IN = f"{PREFIX}/", f"{PREFIX}/sign-in"
HTML = ("text/html", "application/xhtml+xml")
ANYBODY = "(anybody)"
"""Action of pages that are shown without a sign-in."""
SIGNED_IN = "(signed in)"
"""Action of pages about the user's own session and identity, for which no role is needed."""

View = TypeVar("View", bound=Callable[..., ResponseReturnValue])

blueprint = Blueprint("web", __name__, url_prefix=PREFIX, template_folder="templates")


def page(method: str, rule: str, action: str, answers: tuple[str, ...] = HTML) -> Callable[[View], View]:
    """Register a view at `PREFIX` + `rule`, for callers whom the policy allows `action`.

    `answers` are the content types of its answer.
    """

    def register(view: View) -> View:
        auth.by_session(view)
        view.answers = answers  # type: ignore[attr-defined]
        view.action = action  # type: ignore[attr-defined]
        endpoint = f"{view.__module__.rpartition('.')[2]}-{view.__name__}"
        blueprint.add_url_rule(rule, endpoint=endpoint, view_func=view, methods=[method])
        return view

    return register


def safe_redirect_path(path: str) -> str:
    """Return a path below /ui that a form named, or that of the first page instead of anything else."""
    plain = path.isprintable() and path.isascii() and "\\" not in path and "//" not in path
    return path if plain and path.startswith(HOME) else HOME


@blueprint.before_request
def _enter() -> ResponseReturnValue | None:
    """Check the session, the form and the policy before the view."""
    action: str = getattr(current_app.view_functions[request.endpoint or ""], "action", SIGNED_IN)
    protection.check()
    if action == ANYBODY:
        return None
    try:
        sessions.authenticate()
    except NotAuthenticated:
        return to_sign_in()
    if action != SIGNED_IN:
        policy.require(caller(), action)
    if request.method == "GET" and "HX-Request" not in request.headers and _answers() is HTML:
        g.journal_position = changes.position(climate())
    return None


def _answers() -> tuple[str, ...]:
    """Return the content types of the answer to this request."""
    return getattr(current_app.view_functions[request.endpoint or ""], "answers", ())


def to_sign_in() -> Response:
    """Return the redirection to the sign-in, which returns to this page."""
    sessions.sign_out()
    back = request.full_path.rstrip("?") if request.method == "GET" else HOME
    target = f"{SIGN_IN}?next={quote(back, safe='/')}"
    if request.headers.get("HX-Request"):
        return Response(status=204, headers={"HX-Redirect": target})
    return redirect(target, 303)  # type: ignore[return-value]


@blueprint.after_request
def _leave(response: Response) -> Response:
    return protection.add_headers(response)


@blueprint.errorhandler(Exception)
def _failed(error: Exception) -> Response:
    problem = errors.problem_of(error)
    if problem.status == 401 and is_authenticated():
        return to_sign_in()
    return error_pages.render(problem)


@page("GET", "/<path:rest>", ANYBODY, answers=("*/*", *HTML))
def unknown(rest: str) -> ResponseReturnValue:
    """Answer each other path below /ui with a page instead of JSON."""
    sessions.recognize()
    raise NotFound(f"There is no page {PREFIX}/{rest[:80]}.")
