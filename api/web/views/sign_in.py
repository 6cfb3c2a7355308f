"""Sign-in, sign-out, and the change to another project of the same user."""

from flask import flash, redirect, render_template, request
from flask.typing import ResponseReturnValue

from api.request_context import identity
from api.web import sessions
from api.web.blueprint import ANYBODY, HOME, SIGN_IN, SIGNED_IN, page, safe_redirect_path
from climate.domain.errors import InvalidInput, NotAuthenticated, TooManyAttempts
from climate.identity.authentication import page_sign_in

WRONG = "User name and password do not belong together, or the user is disabled."
LONGEST = 255


@page("GET", "/sign-in", ANYBODY)
def show_form() -> ResponseReturnValue:
    """Show the form."""
    return _form(request.args.get("next", ""), "")


@page("POST", "/sign-in", ANYBODY)
def sign_in() -> ResponseReturnValue:
    """Begin a session of the user whose password was given, and go on to the page that was asked for."""
    name, password = request.form.get("user", "").strip(), request.form.get("password", "")
    back = request.form.get("next", "")
    if not name or not password or "\0" in name + password:
        return _form(back, name, "Enter both user name and password."), 400
    try:
        token = page_sign_in.token(identity(), name[:LONGEST], password, request.remote_addr or "")
    except NotAuthenticated:
        return _form(back, name, WRONG), 401
    except TooManyAttempts as error:
        return _form(back, name, f"{error}"), 429
    sessions.enter(token, page_sign_in.projects(identity(), token))
    return redirect(safe_redirect_path(back), 303)


@page("POST", "/sign-out", SIGNED_IN)
def sign_out() -> ResponseReturnValue:
    """Revoke the token of the session, and forget it."""
    page_sign_in.sign_out(identity(), sessions.token())
    sessions.sign_out()
    flash("You are signed out.")
    return redirect(SIGN_IN, 303)


@page("POST", "/project", SIGNED_IN)
def change_project() -> ResponseReturnValue:
    """Go on in another project of the user."""
    wanted = request.form.get("project_id", "")
    try:
        sessions.change_token(page_sign_in.for_project(identity(), sessions.token(), wanted))
    except NotAuthenticated:
        raise InvalidInput(f"You have no role in the project {wanted[:64]!r}") from None
    return redirect(HOME, 303)


def _form(back: str, name: str, problem: str = "") -> str:
    return render_template("sign_in.html", next=safe_redirect_path(back), name=name[:LONGEST], problem=problem)
