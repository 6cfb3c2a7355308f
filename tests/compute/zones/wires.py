"""Children of the same process, by the host of their URL: WSGI applications called directly, or over sockets."""

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


class Sockets(httpx.AsyncBaseTransport):
    """Leads each request over HTTP to the port on which the application of its host is served."""

    def __init__(self, applications: Mapping[str, Application], ports: Mapping[str, int]) -> None:
        self.applications = applications
        self.ports = ports
        self.inner = httpx.AsyncHTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.host not in self.applications:
            raise httpx.ConnectError("refused") from ConnectionRefusedError(111, "Connection refused")
        request.url = request.url.copy_with(host="127.0.0.1", port=self.ports[request.url.host])
        return await self.inner.handle_async_request(request)

    async def aclose(self) -> None:
        await self.inner.aclose()
