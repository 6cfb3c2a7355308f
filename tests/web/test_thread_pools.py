"""Requests that may take long have threads of their own."""

import pytest

from climate.web.thread_pools import ThreadPools


@pytest.mark.parametrize(
    ("line", "is_long", "name"),
    [
        (b"GET /healthz HTTP/1.1", False, "health"),
        (b"GET /image/v2/images/1/file HTTP/1.1", False, "download"),
        (b"GET /image/v2/images/1 HTTP/1.1", False, None),
        (b"PUT /image/v2/images/1/file HTTP/1.1", False, None),
        (b"PUT /image/v2/images/1/file HTTP/1.1", True, "upload"),
        (b"PUT /image/v2/images/1/stage?x HTTP/1.1", True, "upload"),
        (b"PUT /image/v2/images/1/tags/file HTTP/1.1", True, "refusal"),
        (b"POST /identity/v3/auth/tokens HTTP/1.1", True, "refusal"),
        (b"GET /healthz HTTP/1.1", True, "refusal"),
    ],
)
def test_the_pool_of_a_request(line: bytes, is_long: bool, name: str | None) -> None:
    pool = ThreadPools().of(line, is_long=is_long)
    assert (pool and pool._thread_name_prefix) == name
