"""Requests to a cloud over HTTP: every way to fail, in the words of the port."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from flask import Flask, Response, jsonify, request

from climate import bootstrap
from climate.cloud import CloudError, Refused, openstack
from climate.cloud.bundled import BundledCloud
from climate.cloud.openstack.cloud import OpenStackCloud
from climate.cloud.openstack.connection import TIMEOUT_SECONDS, connect
from climate.cloud.openstack.http import Clash, Missing, Remote, unless_gone
from climate.settings import SettingError, Settings
from tests.identity.identity_factory import served
from tests.system.stack import free_port

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code

PASSWORD = "open-sesame"


def clouds(folder: Path, **entry: object) -> str:
    path = folder / "clouds.yaml"
    path.write_text(yaml.safe_dump({"clouds": {"there": entry}}))
    return str(path)


def without_identity(folder: Path, port: int) -> Remote:
    """A cloud that asks nobody who he is."""
    entry = {"auth_type": "none", "compute_endpoint_override": f"http://127.0.0.1:{port}/compute"}
    return Remote(connect("there", clouds(folder, **entry)))


def version(number: str) -> Response:
    """What clients ask for before anything else."""
    links = [{"rel": "self", "href": request.base_url}]
    reach = {"version": "2.79", "min_version": "2.1"}
    return jsonify({"version": {"id": number, "status": "CURRENT", "links": links, **reach}})


def answer() -> Response:
    """What the query asks for."""
    if "moved" in request.path:
        return Response("<html>", content_type="text/html")
    made = jsonify({"conflictingRequest": {"code": 409, "message": f"no, {request.method}"}})
    made.status_code = int(request.args.get("status", 200))
    return made


def pages() -> Response:
    last = request.args.get("marker") == "2"
    links = [] if last else [{"rel": "next", "href": "http://elsewhere/"}]
    return jsonify({"servers": [{"id": 3}] if last else [{"id": 1}, {"id": 2}], "servers_links": links})


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    app = Flask("there")
    app.add_url_rule("/compute", "version", lambda: version("v2.1"))
    app.add_url_rule("/compute/servers/detail", view_func=pages)
    app.add_url_rule("/compute/<path:path>", view_func=lambda path: answer(), methods=["GET", "POST", "DELETE"])
    with served(app) as port:
        yield without_identity(tmp_path, port)


@pytest.mark.parametrize(
    ("status", "raised"), [(400, Refused), (403, Refused), (404, Missing), (409, Clash), (500, CloudError)]
)
def test_refusals_say_why(remote: Remote, status: int, raised: type[Exception]) -> None:
    with pytest.raises(CloudError, match=f"GET /x with {status}: no, GET") as caught:
        remote.get("/x", status=str(status))
    assert type(caught.value) is raised


def test_what_is_no_answer_is_an_error(remote: Remote) -> None:
    with pytest.raises(CloudError, match="did not answer GET /moved"):
        remote.get("/moved")


def test_all_pages_are_read(remote: Remote) -> None:
    assert [each["id"] for each in remote.each("/servers/detail")] == [1, 2, 3]


def test_a_list_that_nothing_matches_is_empty(remote: Remote) -> None:
    assert list(remote.each("/os-hypervisors", status="404")) == []


def test_a_cloud_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CloudError, match="did not answer GET /servers"):
        without_identity(tmp_path, free_port()).get("/servers")


def test_no_secret_is_shown_when_signing_in_fails(tmp_path: Path) -> None:
    def refuse() -> tuple[Response, int]:
        assert PASSWORD in request.get_data(as_text=True)
        return jsonify({"error": {"code": 401, "message": "The request requires authentication."}}), 401

    app = Flask("identity")
    app.add_url_rule("/v3", "version", lambda: version("v3.14"))
    app.add_url_rule("/v3/auth/tokens", view_func=refuse, methods=["POST"])
    with served(app) as port:
        who = {"username": "admin", "password": PASSWORD, "project_name": "admin"}
        where = {"auth_url": f"http://127.0.0.1:{port}/v3", "user_domain_name": "Default"}
        cloud = openstack.of("there", clouds(tmp_path, auth=who | where | {"project_domain_name": "Default"}))
        with pytest.raises(CloudError, match="did not answer GET /servers/s1: Unauthorized") as caught:
            cloud.server("s1")
    assert PASSWORD not in str(caught.value)


def test_every_request_has_a_time_out(tmp_path: Path) -> None:
    assert without_identity(tmp_path, 1).connection.session.timeout == TIMEOUT_SECONDS


@pytest.mark.parametrize(
    ("entry", "config", "says"),
    [
        ("", lambda path: clouds(path), "needs CLIMATE_OPENSTACK_CLOUD"),
        ("nowhere", lambda path: clouds(path), r"'nowhere' of .* cannot be used: Cloud nowhere"),
        ("there", lambda path: str(path / "none.yaml"), "none.yaml' is not a file"),
    ],
)
def test_settings_that_cannot_be_used_are_reported(
    tmp_path: Path, entry: str, config: Callable[[Path], str], says: str
) -> None:
    with pytest.raises(SettingError, match=says):
        openstack.of(entry, config(tmp_path))


def test_the_settings_choose_the_cloud(tmp_path: Path) -> None:
    config = clouds(tmp_path, auth_type="none", compute_endpoint_override="http://127.0.0.1:1/compute")
    settings = Settings(
        home=tmp_path,
        database_url="postgresql://nobody@127.0.0.1:1/none",
        cloud="openstack",
        openstack_cloud="there",
        openstack_config=config,
    )
    bootstrap.check(settings)
    assert isinstance(bootstrap.build(settings).climate.cloud, OpenStackCloud)
    assert isinstance(bootstrap.build(replace(settings, cloud="bundled")).climate.cloud, BundledCloud)
    with pytest.raises(SettingError, match=r"'nowhere' of .* cannot be used"):
        bootstrap.check(replace(settings, openstack_cloud="nowhere"))


def test_without_the_package_it_says_what_to_install() -> None:
    """In a process of its own, where importing the package fails."""
    program = (
        "import sys; sys.modules['openstack'] = None\n"
        "from climate.cloud import openstack\n"
        "try: openstack.of('there')\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "SettingError CLIMATE_CLOUD=openstack needs the package openstacksdk" in done.stdout, done.stderr


@pytest.mark.parametrize("error", [Clash, Refused, CloudError])
def test_only_an_object_that_the_cloud_lacks_is_none(error: type[CloudError]) -> None:
    def answer(raised: CloudError | None) -> str:
        if raised is not None:
            raise raised
        return "there"

    assert unless_gone(lambda: answer(None)) == "there"
    assert unless_gone(lambda: answer(Missing("gone"))) is None
    with pytest.raises(error):
        unless_gone(lambda: answer(error("no")))
