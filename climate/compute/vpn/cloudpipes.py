"""Cloudpipes: a server in a project's network that gives its users access from outside by a VPN.

The cloudpipe of a network is the server with the address that the VLAN manager keeps for it. The certificate
authority belongs to the project, and outlives the server: clients keep their certificates if the cloudpipe is created
again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Busy, Conflict, NoMoreAddresses, NotFound, QuotaExceeded
from climate.compute.models.request import BootRequest
from climate.compute.models.server import ACTIVE, DELETE, PAUSED, REBOOT_HARD, SUSPENDED
from climate.compute.network.managers import MANAGERS
from climate.compute.network.models import VLAN, Network
from climate.compute.projects import flavors
from climate.compute.servers import actions
from climate.compute.servers import create as boot
from climate.compute.servers.actions import By
from climate.compute.store.networks import network_hosts
from climate.compute.store.projects import images
from climate.compute.store.projects import vpn as rows
from climate.compute.store.projects.vpn import Authority, Row
from climate.compute.vpn import authority, openvpn
from climate.compute.vpn.authority import Pair
from climate.compute.vpn.cloudpipe_script import KEY, clients, pair
from climate.database.connections import reading
from climate.sealed_secrets import Unreadable

SUFFIX = "-vpn"
"""Suffix of the name of a cloudpipe, after the project's id. Source: Nova's vpn_key_suffix."""

MOST_CERTIFICATES = 1000
"""Maximum number of unexpired certificates of a project, also revoked ones: each connection reads their list."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of a user to connect; the private key is returned once and not stored."""

    serial: str
    name: str
    expires_at: datetime
    authority: str
    pair: Pair
    config: str
    """The complete configuration of OpenVPN."""


def create(compute: Compute, project_id: str, by: By) -> str:
    """Boot the cloudpipe of a project; return the id of its server, which may exist already.

    Raises BadRequest if a setting or the project's network lacks something that a cloudpipe needs, NoMoreNetworks,
    NoValidHost, QuotaExceeded, Conflict.
    """
    options = compute.network
    if options.vpn_image is None:
        raise BadRequest("There is no image for cloudpipes: set CLIMATE_VPN_IMAGE_ID")
    flavor = flavors.find(compute, options.vpn_flavor, project_id)
    if flavor is None:
        raise BadRequest(f"CLIMATE_VPN_FLAVOR={options.vpn_flavor} is no flavor that project {project_id} may use")
    with compute.engine.begin() as conn:
        if there := rows.cloudpipes(conn, project_id):
            return str(there[0]["server_id"])
        if images.get(conn, options.vpn_image) is None:
            raise BadRequest(f"CLIMATE_VPN_IMAGE_ID={options.vpn_image} is no image")
        network = _network(conn, project_id)
        _authority(compute, conn, project_id)
    request = BootRequest(
        project_id=project_id,
        user_id=by["user_id"],
        name=f"{project_id}{SUFFIX}",
        flavor=flavor,
        image_id=options.vpn_image,
        networks=(network.id,),
        config_drive=True,
        admin=True,
        request_id=by["request_id"],
    )
    try:
        return boot.boot(compute, request, strict=True)[0].id
    except NoMoreAddresses:
        held = f"Address {network.vpn_private_address} of network {network.label} is not free yet"
        raise Conflict(f"{held}: try again in a moment") from None


def listed(compute: Compute, project_id: str | None = None) -> list[Row]:
    """Return the cloudpipes of all projects, or of one: project_id, server_id, status and public address."""
    with reading(compute.engine) as conn:
        return rows.cloudpipes(conn, project_id)


def delete(compute: Compute, project_id: str, by: By, *, with_authority: bool = False) -> None:
    """Delete the cloudpipe of a project; `with_authority`: its certificates become invalid.

    Raises NotFound if there is nothing to delete; Conflict and Busy if the server cannot be deleted now, and then the
    authority stays.
    """
    with compute.engine.begin() as conn:
        there = rows.cloudpipes(conn, project_id)
        known = with_authority and rows.authority(conn, project_id) is not None
        if not there and not known:
            raise NotFound(f"Project {project_id[:80]} has no cloudpipe.")
    for one in there:
        actions.request_task(compute, one["server_id"], DELETE, by=by)
    if known:
        with compute.engine.begin() as conn:
            rows.forget(conn, project_id)


def configure(compute: Compute, project_id: str, address: str, port: int) -> None:
    """Set the public address of a project's cloudpipe. Raises BadRequest, NoMoreNetworks, Conflict."""
    with compute.engine.begin() as conn:
        network = _project_network(conn, project_id)
        if not rows.publish(conn, network.id, address, port):
            raise Conflict(f"Port {port} of {address} leads to another network's cloudpipe: give another vpn_port")
        network_hosts.call(conn, [network.host] if network.host else [])


def issue(compute: Compute, project_id: str, name: str, user_id: str) -> Credentials:
    """Sign a certificate for a user of a project's VPN.

    Raises NotFound if the project has no VPN, Conflict, QuotaExceeded.
    """
    with compute.engine.begin() as conn:
        rows.alone(conn, project_id)
        known, now = _known(conn, project_id), compute.now(conn)
        if rows.count(conn, project_id, now) >= MOST_CERTIFICATES:
            raise QuotaExceeded(f"A project has at most {MOST_CERTIFICATES} VPN certificates that have not expired.")
        public = _public(_project_network(conn, project_id))
        made = authority.sign_client(_opened(compute, known), name, now)
        words = {"serial": made.serial, "project_id": project_id, "user_id": user_id, "name": name}
        rows.add(conn, {**words, "expires_at": made.expires_at}, now)
    config = openvpn.client_file(known.certificate, made, public)
    return Credentials(made.serial, name, made.expires_at, known.certificate, made, config)


def certificates(compute: Compute, project_id: str, user_id: str | None = None) -> list[Row]:
    """Return the certificates of a project's VPN, or of one user of it. NotFound if the project has no VPN."""
    with reading(compute.engine) as conn:
        _known(conn, project_id)
        return rows.certificates(conn, project_id, user_id)


def revoke(compute: Compute, project_id: str, serial: str, by: By, user_id: str | None = None) -> None:
    """Revoke a certificate; the cloudpipe restarts and reads the new revocation list.

    Raises NotFound; Conflict if the certificate is revoked but the cloudpipe cannot be restarted now.
    """
    with compute.engine.begin() as conn:
        if not rows.revoke(conn, project_id, serial, user_id, compute.now(conn)):
            raise NotFound(f"VPN certificate {serial[:80]} could not be found.")
        running = [one for one in rows.cloudpipes(conn, project_id) if one["status"] in (ACTIVE, PAUSED, SUSPENDED)]
    for one in running:
        try:
            actions.request_task(compute, one["server_id"], REBOOT_HARD, by=by)
        except (Busy, Conflict) as error:
            reason = f"Certificate {serial} is revoked, and is refused once cloudpipe {one['server_id']} is restarted"
            raise Conflict(f"{reason}: {error} Revoke it again later.") from None


def _network(conn: Connection, project_id: str) -> Network:
    """Return the network of a project's cloudpipe, with the required settings."""
    network = _project_network(conn, project_id)
    _public(network)
    if clients(conn, network.id) is None:
        reason = f"Network {network.label} keeps no addresses for VPN clients"
        raise BadRequest(f"{reason}: set CLIMATE_VPN_CLIENTS, and make the project a network with them")
    return network


def _project_network(conn: Connection, project_id: str) -> Network:
    """Return the first network of a project, or give it the lowest free VLAN."""
    return MANAGERS[VLAN].attached(conn, project_id)[0]


def _public(network: Network) -> tuple[str, int]:
    address, port = network.vpn_public_address, network.vpn_public_port
    if address is None or port is None:
        reason = f"The cloudpipe of network {network.label} is reached nowhere"
        raise BadRequest(f"{reason}: set CLIMATE_VPN_IP on network host {network.host}, or configure the project's VPN")
    return str(address), port


def _authority(compute: Compute, conn: Connection, project_id: str) -> Authority:
    """Return the authority of a project, creating it if there is none."""
    there = rows.authority(conn, project_id)
    if there is not None:
        return there
    now = compute.now(conn)
    own = authority.create(project_id, now)
    server = authority.sign_server(own, now)
    sealed, server_sealed = (compute.vault.seal({KEY: one.key}) for one in (own, server))
    return rows.insert_authority(
        conn, Authority(project_id, own.certificate, sealed, server.certificate, server_sealed)
    )


def _known(conn: Connection, project_id: str) -> Authority:
    result = rows.authority(conn, project_id)
    if result is None:
        raise NotFound(f"Project {project_id[:80]} has no VPN.")
    return result


def _opened(compute: Compute, known: Authority) -> Pair:
    try:
        return pair(compute.vault, known.certificate, known.sealed_key)
    except Unreadable as error:
        raise Conflict(f"The VPN of project {known.project_id}: {error} Delete its authority, and create it.") from None


def status_words(row: Mapping[str, object]) -> str:
    """Return the state of a cloudpipe in the terms of Nova's API: running, pending, down or invalid."""
    if row["public_ip"] is None:
        return "invalid"
    return {ACTIVE: "running", "BUILD": "pending"}.get(str(row["status"]), "down")
