"""A small application behind the worker of the web server, in a process of its own."""

import fcntl
import gc
import os
import resource
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from climate.web.event_streams import EventStreams, Item, Stream
from climate.web.worker import BufferingWorker, PatientSocket

LONG = 12 * 1024 * 1024
"""Bytes of a long answer: more than the buffers of two sockets hold."""


LONGER = 40 * 1024 * 1024
"""Bytes of an answer that no thread leaves to the loop whole."""


class NoItems:
    """A source in which nothing happens."""

    position = 1

    def read(self) -> Sequence[Item]:
        return ()

    def missed(self, after: int) -> Sequence[Item]:
        return ()


STREAMS: EventStreams[Item] = EventStreams(NoItems)


class ImpatientWorker(BufferingWorker):
    """The worker, with little time for heads and bodies."""

    head_seconds, body_seconds = 0.7, 0.7


class ImpatientSocket(PatientSocket):
    """A socket on which a client that is too slow is given up soon."""

    slow_seconds = 0.3


class HurryingWorker(BufferingWorker):
    """The worker, with little time for long bodies."""

    client_socket = ImpatientSocket


class BusyWorker(HurryingWorker):
    """The worker, which demands much of uploads while others wait."""

    busy_bytes_per_second = 512 * 1024


class BriskSocket(PatientSocket):
    """A socket on which a client that takes nothing of too long an answer is given up soon."""

    take_seconds = 0.2


class BriskWorker(BufferingWorker):
    """The worker, with little time for clients that take too long answers."""

    client_socket = BriskSocket


class FrugalWorker(BufferingWorker):
    """The worker, with little memory for requests."""

    most_bytes = 2 * 1024 * 1024


class FewFilesWorker(BufferingWorker):
    """The worker, which may have few files open."""

    def init_process(self) -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        super().init_process()


def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer with the path and how long the body is.

    `/hold` waits for a lock on a file, `.../file` is a long file, `/long` a long text, and `/longer` one
    that is too long to be kept. `/stream` hands its connection over to a stream of events.
    """
    path = environ["PATH_INFO"]
    if path == "/stream":
        STREAMS.admit("u")
        STREAMS.take(Stream(environ["gunicorn.socket"].hand_over(), "u", lambda found: b""))
        start_response("200 OK", [])
        return [b"this goes nowhere"]
    if path == "/threads":
        start_response("200 OK", [("Content-Length", str(len(answer := str(threading.active_count()).encode())))])
        return [answer]
    if path.startswith("/hold/"):
        with open(os.environ["HOLD"], "rb") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
    if path.endswith("/file"):
        file = open(os.environ["HOLD"] + ".large", "rb")  # noqa: SIM115  (the server closes it)
        start_response("200 OK", [("Content-Length", str(os.fstat(file.fileno()).st_size))])
        sent: Iterable[bytes] = environ["wsgi.file_wrapper"](file)
        return sent
    if path == "/collections":
        start_response(
            "200 OK", [("Content-Length", str(len(answer := f"{gc.get_threshold()} {gc.get_freeze_count()}".encode())))]
        )
        return [answer]
    size = os.getpid() if path == "/pid" else len(environ["wsgi.input"].read())
    lengths = {"/long": LONG, "/long/broken": LONG, "/longer": LONGER}
    answer = f"{path} {size}".encode() + b"x" * lengths.get(path, 0)
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return _broken(answer) if path == "/long/broken" else [answer]


def _broken(answer: bytes) -> Iterator[bytes]:
    """Give most of an answer, and fail."""
    yield answer[:-1]
    raise ArithmeticError
