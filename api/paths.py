"""Other spellings of the same path, made one before the routes are asked."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

RESERVATION = "/reservation"
SUFFIX = ".json"


def canonical(path: str) -> str:
    """`/v1/leases`, `/v1/leases.json`, `/reservation/v1/leases.json` -> `/reservation/v1/leases`."""
    if path == "/v1" or path.startswith("/v1/"):
        path = RESERVATION + path
    if path.startswith(f"{RESERVATION}/"):
        path = path.removesuffix(SUFFIX)
    return path


class Paths:
    """WSGI middleware: the application sees canonical paths only."""

    def __init__(self, app: "WSGIApplication") -> None:
        self.app = app

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        environ["PATH_INFO"] = canonical(environ.get("PATH_INFO", ""))
        return self.app(environ, start_response)
