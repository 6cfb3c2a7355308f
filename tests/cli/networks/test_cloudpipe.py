"""climate cloudpipe: what is sent, what is written."""

import zipfile
from pathlib import Path

from tests.cli.conftest import Cli
from tests.cli.fake_server import Asked, Wire

PIPES = "/compute/v2.1/os-cloudpipe"
MADE = {
    "serial": "1f",
    "name": "ada",
    "expires_at": "2031-01-01T00:00:00Z",
    "authority": "the authority",
    "certificate": "the certificate",
    "private_key": "the private key",
    "config": "all of it",
}


def about(wire: Wire) -> list[Asked]:
    """What was asked about cloudpipes."""
    return [one for one in wire.asked if one.path.startswith(PIPES)]


def test_an_administrator_makes_lists_configures_and_deletes(cli: Cli, wire: Wire) -> None:
    row = {"project_id": "p", "instance_id": "i1", "state": "running", "public_port": 1000}
    wire.cloudpipe_answers += [
        (200, {"instance_id": "i1"}),
        (200, {"cloudpipes": [row]}),
        (202, {}),
        (202, {}),
        (202, {}),
    ]
    assert cli("cloudpipe", "create", "p", "-f", "value").out == "i1\n"
    assert cli("cloudpipe", "list", "-f", "value", "-c", "state", "-c", "public_port").out == "running 1000\n"
    assert cli("cloudpipe", "configure", "p", "203.0.113.1", "1194").code == 0
    assert cli("cloudpipe", "delete", "p").code == 0
    assert cli("cloudpipe", "delete", "p/q", "--with-authority").code == 0
    sent = [(one.method, one.path, one.query, one.body) for one in about(wire)]
    assert sent == [
        ("POST", PIPES, {}, {"cloudpipe": {"project_id": "p"}}),
        ("GET", PIPES, {}, None),
        (
            "PUT",
            f"{PIPES}/configure-project",
            {},
            {"configure_project": {"project_id": "p", "vpn_ip": "203.0.113.1", "vpn_port": 1194}},
        ),
        ("DELETE", f"{PIPES}/p", {}, None),
        ("DELETE", f"{PIPES}/p/q", {"authority": "true"}, None),
    ]


def test_credentials_are_written_for_their_owner_alone_and_over_nothing(cli: Cli, wire: Wire, tmp_path: Path) -> None:
    file = tmp_path / "it.zip"
    wire.cloudpipe_answers.append((201, {"certificate": MADE}))
    ran = cli("cloudpipe", "credentials", "p", "--name", "ada", "--file", str(file), "-f", "value", "-c", "serial")
    assert (ran.code, ran.out) == (0, "1f\n"), ran.err
    assert wire.asked[-1].body == {"certificate": {"name": "ada"}}
    assert file.stat().st_mode & 0o077 == 0
    with zipfile.ZipFile(file) as archive:
        held = {name: archive.read(name).decode() for name in archive.namelist()}
    assert held == {
        "ca.crt": "the authority",
        "client.crt": "the certificate",
        "client.key": "the private key",
        "cloudpipe.ovpn": "all of it",
    }
    asked = len(about(wire))
    assert cli("cloudpipe", "credentials", "p", "--name", "ada", "--file", str(file)).code == 2
    assert len(about(wire)) == asked, "nothing is signed that could not be kept"


def test_certificates_are_listed_and_revoked(cli: Cli, wire: Wire) -> None:
    wire.cloudpipe_answers += [(200, {"certificates": [{"serial": "1f", "name": "ada"}]}), (202, {}), (202, {})]
    assert cli("cloudpipe", "certificates", "p", "-f", "value", "-c", "serial", "-c", "name").out == "1f ada\n"
    assert cli("cloudpipe", "revoke", "p", "1f", "2f").code == 0
    revoked = [(one.method, one.path) for one in about(wire)[1:]]
    assert revoked == [("DELETE", f"{PIPES}/p/certificates/{serial}") for serial in ("1f", "2f")]
