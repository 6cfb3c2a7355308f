"""The connection to the broker of a neighbour."""

import socket
import traceback
from collections.abc import Iterator

import pytest

from climate.compute.cells.messaging.broker import BrokerTransport, params
from climate.compute.cells.messaging.transport import QUEUES, TransportError
from climate.compute.cells.models import Broker, Cell

WHOLE = Broker("10.0.0.2", 6379, "broker", "broker-password", "3", secret="secret of the link")


@pytest.fixture
def transport() -> Iterator[BrokerTransport]:
    made = BrokerTransport()
    yield made
    made.close()


def test_ce_23_one_queue_for_each_type_of_message() -> None:
    assert QUEUES == {
        "targeted": "cells.intercell.targeted",
        "broadcast": "cells.intercell.broadcast",
        "response": "cells.intercell.response",
    }


def test_ce_23_server_params_are_those_of_the_neighbour() -> None:
    assert WHOLE.server_params() == {
        "hostname": "10.0.0.2",
        "port": 6379,
        "username": "broker",
        "password": "broker-password",
        "virtual_host": "3",
    }
    assert Broker("10.0.0.2", username="", password=None).server_params() == {"hostname": "10.0.0.2"}


def test_params_of_the_library() -> None:
    assert params(WHOLE) == {
        "transport": "redis",
        "hostname": "10.0.0.2",
        "port": 6379,
        "userid": "broker",
        "password": "broker-password",
        "virtual_host": "3",
    }
    assert params(Broker(transport_url="unix:///run/valkey.sock")) == {"hostname": "redis+socket:///run/valkey.sock"}


def test_cell_without_an_address_cannot_be_sent_to(transport: BrokerTransport) -> None:
    with pytest.raises(TransportError, match="neither rpc_host nor transport_url"):
        transport.send(Cell("child"), QUEUES["targeted"], {})


def test_broker_that_is_away_is_named_without_its_password(transport: BrokerTransport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = int(one.getsockname()[1])
    cell = Cell("child", broker=Broker("127.0.0.1", port, "broker", "broker-password"))
    with pytest.raises(TransportError, match="broker of cell child is unreachable") as refused:
        transport.send(cell, QUEUES["targeted"], {})
    assert "broker-password" not in str(refused.value) + repr(cell)


@pytest.mark.parametrize("url", ["redis://:broker-password@10.0.0.2:port/0", "unix://nowhere:broker-password"])
def test_address_that_is_none_is_a_broker_that_is_away(transport: BrokerTransport, url: str) -> None:
    cell = Cell("child", broker=Broker(transport_url=url))
    with pytest.raises(TransportError, match="broker of cell child is unreachable: ValueError") as refused:
        transport.send(cell, QUEUES["targeted"], {})
    assert "broker-password" not in "".join(traceback.format_exception(refused.value))
