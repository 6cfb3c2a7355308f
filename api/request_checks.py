"""Checks of headers and query strings before any view runs."""

from collections.abc import Callable
from typing import TypeVar

from flask import Flask, current_app, request
from werkzeug.exceptions import NotAcceptable

from climate.domain.errors import InvalidInput, NotFound

View = TypeVar("View", bound=Callable[..., object])


def answers(*types: str) -> Callable[[View], View]:
    """Mark a view that does not answer with JSON."""

    def mark(view: View) -> View:
        view.answers = types  # type: ignore[attr-defined]
        return view

    return mark


def install(app: Flask) -> None:
    """Install the checks of each request."""
    app.before_request(_check_accept)
    app.before_request(_check_texts)


def _check_accept() -> None:
    accepted = request.accept_mimetypes
    if request.endpoint is None or not accepted:
        return
    view = current_app.view_functions[request.endpoint]
    offered = getattr(view, "answers", ("application/json",))
    if accepted.best_match(offered) is None:
        raise NotAcceptable(f"This is answered as {' or '.join(offered)} only")


def _check_texts() -> None:
    """Refuse U+0000, the only character that PostgreSQL cannot store."""
    if request.endpoint is None:
        return
    if "\0" in request.path:
        raise NotFound()
    for key, value in request.args.items(multi=True):
        if "\0" in key + value:
            raise InvalidInput(f"The query parameter {key[:40]!r} must not contain U+0000")
