"""Requests about servers of child zones: forwarded to the child, whose answer is returned."""

from collections.abc import Mapping
from urllib.parse import quote
from uuid import UUID

from flask import Response, g, jsonify, request

from api import errors
from api.body import read_object
from api.compute import validation
from api.compute.microversion import HEADERS, written
from api.compute.zones import link_rewriting, zone_chain
from api.request_context import compute
from climate.compute.zones import routing
from climate.compute.zones.client_interface import ROLE_HEADER, ChildAnswer, ChildRequest

SERVERS = "/compute/v2.1/servers/"
NOT_FOUND = 404
HERE_ALONE = ("/scheduling", "/diagnostics")
"""Ends of paths that are never forwarded, because the answers name hosts."""


class Answered(Exception):
    """Raised with the answer of a child zone, which becomes the answer to this request."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


def answer_known(server_id: str) -> None:
    """Return if the server may be in this zone; raise Answered with the answer of the child that had it lately.

    A view calls it after it has checked the caller's rights.
    """
    if _server_id() != server_id:
        return
    result = routing.forward_known(compute(), server_id, lambda: request_for(server_id), validation.own_project())
    if result is not None:
        raise Answered(passed_on(result))


def answer_passed_on(answered: Answered) -> Response:
    """Return the answer of a child zone."""
    return answered.response


def answer(error: Exception) -> Response:
    """Return the answer of the child zone that has the server in the path, or else that of the error."""
    server_id = _server_id()
    # Cells raise their own subclasses of NotFound.
    if server_id is None or errors.problem_of(error).status != NOT_FOUND:
        return errors.answer(error)
    try:
        result = routing.forward(compute(), server_id, request_for(server_id), validation.own_project())
    except Exception as failure:  # noqa: BLE001 - nobody answers what an error handler raises
        return errors.answer(failure)
    return passed_on(result)


def request_for(server_id: str) -> ChildRequest:
    """Return this request for a child zone."""
    rest = request.path.removeprefix(SERVERS)[len(server_id) :]
    has_body = request.method in ("POST", "PUT") and request.get_data(cache=True) != b""
    return ChildRequest(
        request.method,
        f"/servers/{server_id}{quote(rest)}",
        body=_body() if has_body else None,
        query=request.args.to_dict() or None,
        headers=headers(),
        chain=zone_chain.chain(),
    )


def send_along(action: str, values: Mapping[str, str]) -> None:
    """Add values to the content of this action when it goes to the child zone that has the server."""
    g.sent_along = {action: values}


def _body() -> dict[str, object]:
    """Return the body of this request for a child zone."""
    body = read_object()
    added: Mapping[str, Mapping[str, str]] = g.get("sent_along", {})
    return body | {action: body[action] | values for action, values in added.items()}


def headers() -> dict[str, str]:
    """Return the headers of every forwarded request: the microversion and the role of the user."""
    return {HEADERS[0]: f"compute {written(g.microversion)}", ROLE_HEADER: zone_chain.role()}


def passed_on(answer: ChildAnswer) -> Response:
    """Return a child's answer with its status, and with links to this zone."""
    response = Response() if answer.body is None else jsonify(link_rewriting.rewrite_links(answer.body))
    response.status_code = answer.status
    if location := link_rewriting.url(answer.headers.get("location", "")):
        response.headers["Location"] = location
    return response


def _server_id() -> str | None:
    """Return the id of the server in the path if a child zone may have it."""
    text = (request.view_args or {}).get("server_id", "")
    if not request.path.startswith(f"{SERVERS}{text}") or request.path.endswith(HERE_ALONE):
        return None
    try:
        return str(UUID(text)) if len(text) == 36 else None
    except ValueError:
        return None
