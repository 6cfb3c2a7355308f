"""Requests to this machine by the standard library, because most commands send two and httpcore takes long to load."""

from http.client import HTTPConnection, HTTPException

import httpx


class LoopbackTransport(httpx.BaseTransport):
    """Connections without proxies, one for each request; https is left to httpx, which checks certificates."""

    def __init__(self, verify: bool | str) -> None:
        self.verify = verify
        self.secure: httpx.HTTPTransport | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request; errors are those of httpx."""
        if request.url.scheme == "https":
            self.secure = self.secure or httpx.HTTPTransport(verify=self.verify, trust_env=False)
            return self.secure.handle_request(request)
        timeouts = request.extensions.get("timeout", {})
        connection = HTTPConnection(request.url.host, request.url.port, timeout=timeouts.get("connect"))
        try:
            connection.connect()
            connection.sock.settimeout(timeouts.get("read"))
            return _exchanged(connection, request)
        except TimeoutError as late:
            raise httpx.ReadTimeout(str(late), request=request) from late
        except OSError as wrong:
            raise httpx.ConnectError(wrong.strerror or str(wrong), request=request) from wrong
        except (HTTPException, ValueError) as wrong:
            raise httpx.RemoteProtocolError(str(wrong) or type(wrong).__name__, request=request) from wrong
        finally:
            connection.close()

    def close(self) -> None:
        """Close the connections of https."""
        if self.secure is not None:
            self.secure.close()


def _exchanged(connection: HTTPConnection, request: httpx.Request) -> httpx.Response:
    connection.putrequest(
        request.method, request.url.raw_path.decode("ascii"), skip_host=True, skip_accept_encoding=True
    )
    for name, value in request.headers.raw:
        if name.lower() != b"connection":
            connection.putheader(name, value)
    connection.putheader("Connection", "close")
    connection.endheaders(request.read() or None)
    answer = connection.getresponse()
    headers = [(name, value) for name, value in answer.getheaders() if name.lower() != "transfer-encoding"]
    return httpx.Response(answer.status, headers=headers, content=answer.read(), request=request)
