"""climate cloudpipe: the VPN of a project, and the certificates of its users."""

import io
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from climate.cli.connection.session import current
from climate.cli.lookup import part
from climate.cli.options import listed, output_options

if TYPE_CHECKING:
    from climate.cli.response_types.networks import Certificate

PATH = "/os-cloudpipe"
COLUMNS = ("project_id", "instance_id", "state", "public_ip", "public_port", "internal_ip", "created_at")
CERTIFICATES = ("serial", "name", "user_id", "created_at", "expires_at", "revoked_at")


@click.group("cloudpipe")
def group() -> None:
    """VPNs into the networks of projects."""


@group.command("create")
@click.argument("project", metavar="PROJECT-ID")
@output_options
def create(project: str) -> None:
    """Boot the cloudpipe of a project unless it exists (administrator)."""
    session = current()
    session.show(session.client.json("compute", "POST", PATH, json={"cloudpipe": {"project_id": project}}))


@group.command("list")
@listed
def list_() -> None:
    """List the cloudpipes of all projects (administrator)."""
    session = current()
    session.show_all(session.client.json("compute", "GET", PATH)["cloudpipes"], COLUMNS)


@group.command("delete")
@click.argument("project", metavar="PROJECT-ID")
@click.option("--with-authority", is_flag=True, help="Revoke all certificates of the project.")
def delete(project: str, with_authority: bool) -> None:
    """Delete the cloudpipe of a project; its certificates stay valid for the next one (administrator)."""
    params = {"authority": "true"} if with_authority else {}
    current().client.call("compute", "DELETE", f"{PATH}/{part(project)}", params=params)


@group.command("configure")
@click.argument("project", metavar="PROJECT-ID")
@click.argument("address")
@click.argument("port", type=click.IntRange(1, 65535))
def configure(project: str, address: str, port: int) -> None:
    """Set the ADDRESS and PORT at which the cloudpipe of a project is reached (administrator)."""
    body = {"configure_project": {"project_id": project, "vpn_ip": address, "vpn_port": port}}
    current().client.call("compute", "PUT", f"{PATH}/configure-project", json=body)


@group.command("credentials")
@click.argument("project", metavar="PROJECT-ID")
@click.option("--name", required=True, help="User in the certificate.")
@click.option("--file", "file", type=click.Path(dir_okay=False, path_type=Path), help="Default: cloudpipe-NAME.zip.")
@output_options
def credentials(project: str, name: str, file: Path | None) -> None:
    """Write a new certificate, its key and the configuration of OpenVPN into a ZIP file that only you can read."""
    session = current()
    target = file or Path(f"cloudpipe-{name.replace(os.sep, '-')}.zip")
    if target.exists():
        raise click.UsageError(f"{target} exists already; choose another --file")
    body = {"certificate": {"name": name}}
    made: Certificate = session.client.json("compute", "POST", _certificates(project), json=body)["certificate"]
    _write(target, made)
    details = {"serial": made["serial"], "name": made["name"], "expires_at": made["expires_at"]}
    session.show({**details, "file": str(target)})


@group.command("certificates")
@click.argument("project", metavar="PROJECT-ID")
@listed
def certificates(project: str) -> None:
    """List your certificates in the VPN of a project; administrators see those of all its users."""
    session = current()
    session.show_all(session.client.json("compute", "GET", _certificates(project))["certificates"], CERTIFICATES)


@group.command("revoke")
@click.argument("project", metavar="PROJECT-ID")
@click.argument("serials", nargs=-1, required=True, metavar="SERIAL...")
def revoke(project: str, serials: tuple[str, ...]) -> None:
    """Revoke certificates; the cloudpipe restarts."""
    for serial in serials:
        current().client.call("compute", "DELETE", f"{_certificates(project)}/{part(serial)}")


def _certificates(project: str) -> str:
    return f"{PATH}/{part(project)}/certificates"


def _write(target: Path, made: "Certificate") -> None:
    """Write the ZIP file of a certificate, which only its owner can read."""
    files = {
        "ca.crt": made["authority"],
        "client.crt": made["certificate"],
        "client.key": made["private_key"],
        "cloudpipe.ovpn": made["config"],
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o600 << 16
            archive.writestr(entry, content)
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(packed.getvalue())
