"""Forms of the preferences that a browser keeps: colours and time zone."""

from flask import redirect, request
from flask.typing import ResponseReturnValue

from api.web import preferences
from api.web.blueprint import ANYBODY, page, safe_redirect_path


@page("POST", "/theme", ANYBODY)
def change_theme() -> ResponseReturnValue:
    """Keep the chosen colours, and return to the page."""
    return _kept(preferences.THEME, request.form.get("theme", ""))


@page("POST", "/zone", ANYBODY)
def change_zone() -> ResponseReturnValue:
    """Keep the chosen time zone, and return to the page."""
    return _kept(preferences.ZONE, request.form.get("zone", ""))


def _kept(name: str, value: str) -> ResponseReturnValue:
    response = redirect(safe_redirect_path(request.form.get("next", "")), 303)
    preferences.keep(response, name, value)  # type: ignore[arg-type]
    return response
