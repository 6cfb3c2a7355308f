"""The socket of the metadata service."""

import socket

import pytest

from api.metadata import listener


def test_it_listens_before_its_host_has_the_address() -> None:
    with listener.opened(("169.254.169.254", 0), None) as one:
        assert one.getsockname()[0] == "169.254.169.254"
        assert one.get_inheritable()


def test_another_address_has_to_be_one_of_the_host() -> None:
    with listener.opened(("127.0.0.1", 0), None) as one, socket.create_connection(one.getsockname()) as client:
        assert client.getpeername() == one.getsockname()
    with pytest.raises(OSError, match="Cannot assign requested address"):
        listener.opened(("192.0.2.77", 8775), None)


def test_a_namespace_that_does_not_exist_is_named() -> None:
    with pytest.raises(FileNotFoundError, match="no-such-host"):
        listener.opened(("127.0.0.1", 0), "no-such-host")
