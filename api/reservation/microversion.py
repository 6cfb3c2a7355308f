"""Microversion of the reservation API: exactly one, returned in each answer."""

import re

from flask import Flask, Response, request
from werkzeug.exceptions import BadRequest, NotAcceptable

HEADER = "OpenStack-API-Version"
SERVICE = "reservation"
VERSION = "1.0"
ROOT = f"/{SERVICE}"


def install(app: Flask) -> None:
    """Check the version header of requests for this API, and add the version to the answers."""
    app.before_request(_check)
    app.after_request(_add_version_header)


def _is_ours() -> bool:
    return request.url_rule is not None and (request.path == ROOT or request.path.startswith(f"{ROOT}/"))


def _check() -> None:
    if not _is_ours():
        return
    for part in request.headers.get(HEADER, "").split(","):
        service, _, version = part.strip().partition(" ")
        if service.lower() == SERVICE:
            _check_version(version.strip())


def _check_version(version: str) -> None:
    if version.lower() == "latest" or version == VERSION:
        return
    if not re.fullmatch(r"[1-9][0-9]{0,8}\.(0|[1-9][0-9]{0,8})", version, re.ASCII):
        raise BadRequest(
            f"API Version String {version[:40]} is of invalid format. Must be of format MajorNum.MinorNum."
        )
    raise NotAcceptable(
        f"Version {version} is not supported by the API. Minimum is {VERSION} and maximum is {VERSION}."
    )


def _add_version_header(response: Response) -> Response:
    if _is_ours():
        response.headers[HEADER] = f"{SERVICE} {VERSION}"
        response.vary.add(HEADER)
    return response
