"""The user data of a cloudpipe, generated at each start: keys are stored sealed, and the revocation list grows."""

from ipaddress import IPv4Address, IPv4Network

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import VirtError
from climate.compute.models.server import Server
from climate.compute.store.projects import vpn as rows
from climate.compute.vpn import authority, openvpn
from climate.compute.vpn.authority import Pair
from climate.compute.vpn.openvpn import Clients, Place
from climate.sealed_secrets import Unreadable, Vault

KEY = "key"
"""The name under which a private key is sealed."""


def of_server(compute: Compute, conn: Connection, server: Server) -> bytes | None:
    """Return the script of a server; None: it is not a cloudpipe. VirtError if the keys of its VPN cannot be read."""
    result = rows.place(conn, server.id)
    known = None if result is None else rows.authority(conn, result["project_id"])
    given = None if result is None else clients(conn, result["network_id"])
    if result is None or known is None or given is None:
        return None
    now = compute.now(conn)
    try:
        own = pair(compute.vault, known.certificate, known.sealed_key)
        served = pair(compute.vault, known.server_certificate, known.sealed_server_key)
    except Unreadable as error:
        raise VirtError(f"the VPN of project {known.project_id}: {error}") from None
    revoked = authority.revocations(own, rows.revoked(conn, known.project_id, now), now)
    place = Place(IPv4Network(result["cidr"]), IPv4Address(result["address"]), result["mac"], given)
    return openvpn.server_script(place, known.certificate, served, revoked).encode()


def pair(vault: Vault, certificate: str, sealed_key: str) -> Pair:
    """Return a certificate with its opened key. Unreadable if the key of the vault is gone."""
    return Pair(certificate, str(vault.open(sealed_key)[KEY]))


def clients(conn: Connection, network_id: str) -> Clients | None:
    """Return the addresses of a network that are kept for VPN clients; None: there are none."""
    result = rows.clients(conn, network_id)
    return None if result is None else Clients(IPv4Address(result[0]), IPv4Address(result[1]))
