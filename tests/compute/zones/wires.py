"""Children of the same process: WSGI applications by the host of their URL."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import httpx

Application = Callable[..., Any]


class Wires(httpx.AsyncBaseTransport):
    """Leads each request to the application that is registered for its host, in a thread of its own."""

    def __init__(self, applications: Mapping[str, Application]) -> None:
        self.applications = applications

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        application = self.applications.get(request.url.host)
        if application is None:
            raise httpx.ConnectError("refused") from ConnectionRefusedError(111, "Connection refused")
        content = await request.aread()
        return await asyncio.to_thread(_answered, application, request, content)


def _answered(application: Application, request: httpx.Request, content: bytes) -> httpx.Response:
    sent = httpx.Request(request.method, request.url, headers=request.headers, content=content)
    with httpx.WSGITransport(app=application) as transport:
        answer = transport.handle_request(sent)
        return httpx.Response(answer.status_code, headers=answer.headers, stream=httpx.ByteStream(answer.read()))
