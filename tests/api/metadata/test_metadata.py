"""The metadata service over HTTP: the source address decides, and what proxies say does not count."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from api.metadata import create_app
from tests.compute.network.recorded_network import Books, books
from tests.conftest import Clock

META_DATA = "/openstack/latest/meta_data.json"


@pytest.fixture
def place(scratch: str, tmp_path: Path, clock: Clock) -> Iterator[Books]:
    with books(scratch, tmp_path, clock, manager="flat_dhcp") as made:
        made.served("office", "10.1.0.0/24")
        yield made


@pytest.fixture
def client(place: Books) -> FlaskClient:
    return create_app(place.compute).test_client()


@pytest.fixture
def address(place: Books) -> str:
    (server,) = place.boot(name="web")
    return place.fixed(server.id)[0]


def test_a_server_gets_its_documents(client: FlaskClient, address: str) -> None:
    answer = client.get(META_DATA, environ_base={"REMOTE_ADDR": address})
    assert (answer.status_code, answer.content_type) == (200, "application/json")
    assert answer.json["name"] == "web"
    assert answer.headers["Cache-Control"] == "no-store"
    answer = client.get("/latest//meta-data/local-ipv4", environ_base={"REMOTE_ADDR": address})
    assert (answer.status_code, answer.text) == (200, address)


def test_a_server_posts_its_password_once(client: FlaskClient, address: str) -> None:
    path, source = "/openstack/2013-10-17/password", {"REMOTE_ADDR": address}
    assert client.get(path, environ_base=source).text == ""
    # Whatever the type of the content is, the text is the password.
    form = "application/x-www-form-urlencoded"
    assert client.post(path, data=b"c2VjcmV0", content_type=form, environ_base=source).status_code == 200
    assert client.get(path, environ_base=source).text == "c2VjcmV0"
    refused = client.post(path, data=b"another", environ_base=source)
    assert (refused.status_code, "has a password already" in refused.text) == (409, True)
    assert client.post(path, data=b"", environ_base=source).status_code == 400
    assert client.post(path, data=b"x" * 5000, environ_base=source).status_code == 413
    assert client.post(path, data=b"word", environ_base={"REMOTE_ADDR": "10.1.0.250"}).status_code == 404
    assert client.post(path, data=b"word", headers={"Forwarded": "for=x"}, environ_base=source).status_code == 403


def test_another_address_gets_404_in_a_sentence(client: FlaskClient, address: str) -> None:
    answer = client.get(META_DATA, environ_base={"REMOTE_ADDR": "10.1.0.250"})
    assert (answer.status_code, answer.content_type) == (404, "text/plain; charset=utf-8")
    assert answer.text.startswith("No server has the address 10.1.0.250;")


@pytest.mark.parametrize("header", ["X-Forwarded-For", "x-forwarded-for", "Forwarded", "X-Forwarded-Host"])
@pytest.mark.parametrize("source", ["own", "10.1.0.250"])
def test_a_forged_or_forwarded_source_is_refused(client: FlaskClient, address: str, header: str, source: str) -> None:
    given = {"REMOTE_ADDR": address if source == "own" else source}
    answer = client.get(META_DATA, headers={header: address}, environ_base=given)
    assert answer.status_code == 403
    assert "without a proxy" in answer.text
    assert "web" not in answer.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", META_DATA, 405),
        ("PUT", "/latest/api/token", 405),
        ("DELETE", "/", 405),
        ("GET", "/openstack/latest/user_data", 404),
        ("GET", f"/{'x' * 1001}", 414),
        ("GET", "/latest/%00%ff", 404),
        ("HEAD", META_DATA, 200),
    ],
)
def test_every_request_gets_an_answer(client: FlaskClient, address: str, method: str, path: str, status: int) -> None:
    answer = client.open(path, method=method, environ_base={"REMOTE_ADDR": address})
    assert answer.status_code == status
    if status == 405:
        assert set(answer.headers["Allow"].replace(" ", "").split(",")) == {"GET", "HEAD"}
