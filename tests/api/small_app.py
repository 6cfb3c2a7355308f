"""A small application behind the worker of the web server, in a process of its own."""

import fcntl
import os
from collections.abc import Iterable
from typing import Any

from climate.web_worker import BufferingWorker


class ImpatientWorker(BufferingWorker):
    """The worker, with little time for heads and bodies."""

    head_seconds, body_seconds = 0.7, 0.7


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer with the path and how long the body is; `/hold` waits for a lock on a file."""
    path = environ["PATH_INFO"]
    if path.startswith("/hold/"):
        with open(os.environ["HOLD"], "rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
    size = len(environ["wsgi.input"].read())
    answer = f"{path} {size}".encode()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]
