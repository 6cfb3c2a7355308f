"""Requests of the connection to a cloud carry a service token, if its entry of clouds.yaml says so."""

from pathlib import Path

import pytest
import yaml
from flask import Response, jsonify, request

from climate.cloud.openstack.connection import connect
from climate.cloud.openstack.http import Remote
from tests.identity.identity_factory import served
from tests.identity.keystone.fake_keystone import OWN, FakeKeystone, app_of

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code


@pytest.mark.parametrize(("given", "sent"), [(True, OWN), (False, None), (None, None), ("yes", None)])
def test_the_entry_decides(tmp_path: Path, given: object, sent: str | None) -> None:
    fake = FakeKeystone()
    app = app_of(fake)
    seen: list[tuple[str | None, str | None]] = []

    @app.get("/compute/servers/<name>")
    def server(name: str) -> Response:
        seen.append((request.headers.get("X-Auth-Token"), request.headers.get("X-Service-Token")))
        return jsonify({"server": {"id": name}})

    with served(app) as port:
        fake.port = port
        path = Path(fake.cloud(tmp_path))
        entry = yaml.safe_load(path.read_text())["clouds"]["keystone"]
        entry |= {"compute_endpoint_override": f"http://127.0.0.1:{port}/compute", "compute_api_version": "2.1"}
        entry |= {} if given is None else {"send_service_token": given}
        path.write_text(yaml.safe_dump({"clouds": {"keystone": entry}}))
        assert Remote(connect("keystone", str(path))).get("/servers/one") == {"server": {"id": "one"}}
    assert seen == [(OWN, sent)]
