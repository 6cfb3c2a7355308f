"""Error pages: what was refused, in words, and where to go from there."""

from collections.abc import Mapping

from flask import Response, g, make_response, render_template

from api.error_formats import Problem

TITLES: Mapping[int, str] = {
    400: "That is not possible",
    403: "Not allowed",
    404: "Not found",
    406: "Not available in this form",
    409: "Not possible now",
    412: "Changed meanwhile",
    413: "Too large",
    429: "Too many requests",
    500: "Something failed here",
    503: "Not available now",
    507: "No space left",
}


def render(problem: Problem) -> Response:
    """Return the page of a problem, with its status."""
    title = TITLES.get(problem.status, "That did not work")
    response = make_response(
        render_template("error.html", title=title, problem=problem, request_id=g.get("request_id", "")), problem.status
    )
    response.headers.update(problem.headers)
    return response
