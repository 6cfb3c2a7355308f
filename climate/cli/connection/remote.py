"""Requests to other machines by httpx: proxies, certificates, connections that stay open."""

from typing import Unpack

import httpx

from climate.cli.connection.http_protocols import Answer, Sent
from climate.cli.connection.loopback import CONNECT_SECONDS


class RemoteConnection:
    """Connections of httpx; its errors become TimeoutError and ConnectionError."""

    def __init__(self, timeout: float, verify: bool | str, *, trust_env: bool = True) -> None:
        limits = httpx.Timeout(timeout, connect=min(CONNECT_SECONDS, timeout))
        self._http = httpx.Client(timeout=limits, verify=verify, trust_env=trust_env)

    def request(self, method: str, url: str, **sent: Unpack[Sent]) -> Answer:
        """Send a request; TimeoutError and ConnectionError say that there is no answer."""
        try:
            return self._http.request(method, url, **sent)
        except httpx.TimeoutException as late:
            raise TimeoutError(str(late)) from late
        except (httpx.TransportError, httpx.InvalidURL) as wrong:
            raise ConnectionError(str(wrong)) from wrong

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
