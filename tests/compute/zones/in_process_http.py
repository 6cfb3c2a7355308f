"""Children of the same process, by the host of their URL: WSGI applications called directly, or over sockets."""

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from threading import Thread
from typing import Any
from urllib.parse import unquote

from werkzeug.test import EnvironBuilder, run_wsgi_app

from climate.compute.zones.http.messages import MOST_BYTES, HttpAnswer, HttpRequest, Origin, TooLong, Unreachable
from climate.compute.zones.http.transport import Outcome, SocketTransport, Talk

Application = Callable[..., Any]


class Wires:
    """Leads each request to the application that is registered for its host, in a thread of its own."""

    def __init__(self, applications: Mapping[str, Application]) -> None:
        self.applications = applications

    def run(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Hold all talks at once; one that is late is abandoned."""
        outcomes: list[Outcome] = [TimeoutError() for _ in talks]
        now = time.monotonic()
        threads = [
            Thread(target=self._hold, args=(number, talk, outcomes), daemon=True)
            for number, (talk, _) in enumerate(talks)
        ]
        for thread in threads:
            thread.start()
        for thread, (_, seconds) in zip(threads, talks, strict=True):
            thread.join(max(0, now + seconds - time.monotonic()))
        return list(outcomes)

    def _hold(self, number: int, talk: Talk, outcomes: list[Outcome]) -> None:
        try:
            request = next(talk)
            while True:
                request = talk.send(self._answer(request))
        except StopIteration as end:
            outcomes[number] = end.value
        except BaseException as error:
            outcomes[number] = error

    def _answer(self, request: HttpRequest) -> HttpAnswer:
        application = self.applications.get(request.origin.host)
        if application is None:
            raise Unreachable from ConnectionRefusedError(111, "Connection refused")
        path, _, query = request.target.partition("?")
        environ = EnvironBuilder(
            path=unquote(path),
            query_string=query,
            method=request.method,
            headers=list(request.headers),
            data=request.content,
            base_url=f"{request.origin.scheme}://{request.origin.authority}",
        ).get_environ()
        answer: Iterable[bytes]
        answer, status, headers = run_wsgi_app(application, environ)
        known = {name.lower(): value for name, value in headers}
        content = b"".join(answer)
        if len(content) > MOST_BYTES:
            raise TooLong
        return HttpAnswer(int(status.split()[0]), known, content)


class Sockets(SocketTransport):
    """Leads each request over HTTP to the port on which the application of its host is served."""

    def __init__(self, applications: Mapping[str, Application], ports: Mapping[str, int]) -> None:
        super().__init__(self._address)
        self.applications = applications
        self.ports = ports

    def run(self, talks: Sequence[tuple[Talk, float]]) -> list[Outcome]:
        """Hold all talks at once."""
        return super().run([(self._cut(talk), seconds) for talk, seconds in talks])

    def _cut(self, talk: Talk) -> Generator[HttpRequest, HttpAnswer, Any]:
        """The talk, ended by its first request to a host that is not there."""
        try:
            request = next(talk)
            while True:
                if request.origin.host not in self.applications:
                    raise Unreachable from ConnectionRefusedError(111, "Connection refused")
                request = talk.send((yield request))
        except StopIteration as end:
            return end.value

    def _address(self, origin: Origin) -> tuple[str, int]:
        return "127.0.0.1", self.ports[origin.host]
