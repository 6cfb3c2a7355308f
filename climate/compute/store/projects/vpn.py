"""VPNs of projects as rows: authorities, certificates of users, and the servers that are cloudpipes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text

from climate.advisory_locks import Subject

_KEEP_AUTHORITY = text("""
    INSERT INTO compute_vpn_authorities (project_id, certificate, sealed_key, server_certificate, sealed_server_key)
    VALUES (:project_id, :certificate, :sealed_key, :server_certificate, :sealed_server_key)
    ON CONFLICT DO NOTHING
""")

_AUTHORITY = text("""
    SELECT project_id, certificate, sealed_key, server_certificate, sealed_server_key
    FROM compute_vpn_authorities WHERE project_id = :project_id
""")

_FORGET = text("DELETE FROM compute_vpn_authorities WHERE project_id = :project_id")

_ADD = text("""
    INSERT INTO compute_vpn_certificates (serial, project_id, user_id, name, created_at, expires_at)
    VALUES (:serial, :project_id, :user_id, :name, :now, :expires_at)
""")

_COUNT = text("SELECT count(*) FROM compute_vpn_certificates WHERE project_id = :project_id AND expires_at > :now")

_LIST = text("""
    SELECT serial, project_id, user_id, name, created_at, expires_at, revoked_at FROM compute_vpn_certificates
    WHERE project_id = :project_id AND (CAST(:user_id AS text) IS NULL OR user_id = :user_id)
    ORDER BY created_at, serial
""")

_REVOKE = text("""
    UPDATE compute_vpn_certificates SET revoked_at = coalesce(revoked_at, :now)
    WHERE project_id = :project_id AND serial = :serial AND (CAST(:user_id AS text) IS NULL OR user_id = :user_id)
    RETURNING serial
""")

_REVOKED = text("""
    SELECT serial, revoked_at FROM compute_vpn_certificates
    WHERE project_id = :project_id AND revoked_at IS NOT NULL AND expires_at > :now ORDER BY serial
""")

# Whoever has the VPN's address of a network is its cloudpipe: nobody else gets that one.
_CLOUDPIPES = text("""
    SELECT n.id::text AS network_id, n.project_id, host(n.vpn_private_address) AS internal_ip,
           host(n.vpn_public_address) AS public_ip, n.vpn_public_port AS public_port,
           s.id::text AS server_id, s.status, s.task, s.created_at
    FROM compute_networks n
    JOIN compute_addresses a ON a.network_id = n.id AND a.address = n.vpn_private_address
    JOIN compute_servers s ON s.id = a.server_id
    WHERE CAST(:project_id AS text) IS NULL OR n.project_id = :project_id
    ORDER BY s.created_at, s.id
""")

_PLACE = text("""
    SELECT n.id::text AS network_id, n.project_id, n.cidr::text AS cidr, host(a.address) AS address, v.mac
    FROM compute_vifs v
    JOIN compute_networks n ON n.id = v.network_id
    JOIN compute_addresses a ON a.vif_id = v.id AND a.address = n.vpn_private_address
    WHERE v.server_id = CAST(:server_id AS uuid) AND n.project_id IS NOT NULL
    ORDER BY v.place LIMIT 1
""")

_CLIENTS = text("""
    SELECT host(min(a.address)) AS first, host(max(a.address)) AS last
    FROM compute_addresses a JOIN compute_networks n ON n.id = a.network_id
    WHERE n.id = CAST(:network_id AS uuid) AND a.reserved AND a.address > n.dhcp_start
      AND a.address < CAST(host(broadcast(n.cidr)) AS inet)
""")

_PUBLISH = text("""
    UPDATE compute_networks SET vpn_public_address = CAST(:address AS inet), vpn_public_port = :port
    WHERE id = CAST(:network_id AS uuid)
""")

_TAKEN = text("""
    SELECT EXISTS (SELECT FROM compute_networks WHERE vpn_public_address = CAST(:address AS inet)
                   AND vpn_public_port = :port AND id <> CAST(:network_id AS uuid))
""")

# Whoever signs for a project waits here for whoever does already, so that certificates are counted one by one.
_ALONE = text(Subject.CERTIFICATES.lock("project_id"))

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Authority:
    """The certificate authority of a project and its server's certificate; the keys are sealed."""

    project_id: str
    certificate: str
    sealed_key: str = field(repr=False)
    server_certificate: str
    sealed_server_key: str = field(repr=False)


def keep_authority(conn: Connection, made: Authority) -> Authority:
    """Write the authority of a project down, unless it has one; the one that it has then."""
    given = {name: getattr(made, name) for name in Authority.__slots__}
    conn.execute(_KEEP_AUTHORITY, given)
    found = authority(conn, made.project_id)
    assert found is not None
    return found


def authority(conn: Connection, project_id: str) -> Authority | None:
    """The authority of a project; None: it has none."""
    row = conn.execute(_AUTHORITY, {"project_id": project_id}).mappings().one_or_none()
    return Authority(**row) if row else None


def forget(conn: Connection, project_id: str) -> None:
    """Drop the authority of a project, and all that it has signed."""
    conn.execute(_FORGET, {"project_id": project_id})


def alone(conn: Connection, project_id: str) -> None:
    """Let nobody else sign for a project until the end of the transaction."""
    conn.execute(_ALONE, {"project_id": project_id})


def count(conn: Connection, project_id: str, now: datetime) -> int:
    """How many certificates of a project have not expired, revoked ones among them."""
    return int(conn.execute(_COUNT, {"project_id": project_id, "now": now}).scalar_one())


def add(conn: Connection, certificate: Mapping[str, Any], now: datetime) -> None:
    """Write a certificate down: serial, project_id, user_id, name, expires_at."""
    conn.execute(_ADD, {**certificate, "now": now})


def certificates(conn: Connection, project_id: str, user_id: str | None = None) -> list[Row]:
    """The certificates of a project, or of one user in it, oldest first."""
    return [dict(row) for row in conn.execute(_LIST, {"project_id": project_id, "user_id": user_id}).mappings()]


def revoke(conn: Connection, project_id: str, serial: str, user_id: str | None, now: datetime) -> bool:
    """Revoke a certificate of a project, or of one user in it; False when there is none."""
    given = {"project_id": project_id, "serial": serial, "user_id": user_id, "now": now}
    return conn.execute(_REVOKE, given).first() is not None


def revoked(conn: Connection, project_id: str, now: datetime) -> list[tuple[str, datetime]]:
    """Serial numbers of certificates that are revoked and have not expired, and when they were."""
    rows = conn.execute(_REVOKED, {"project_id": project_id, "now": now})
    return [(row.serial, row.revoked_at) for row in rows]


def cloudpipes(conn: Connection, project_id: str | None = None) -> list[Row]:
    """The servers that are cloudpipes, of all projects or of one."""
    return [dict(row) for row in conn.execute(_CLOUDPIPES, {"project_id": project_id}).mappings()]


def place(conn: Connection, server_id: str) -> Row | None:
    """The network of which a server is the cloudpipe, with its address and MAC there; None: it is none."""
    row = conn.execute(_PLACE, {"server_id": server_id}).mappings().one_or_none()
    return dict(row) if row else None


def clients(conn: Connection, network_id: str) -> tuple[str, str] | None:
    """The first and the last address of a network that are kept for clients; None: there are none."""
    row = conn.execute(_CLIENTS, {"network_id": network_id}).one()
    return None if row.first is None else (row.first, row.last)


def publish(conn: Connection, network_id: str, address: str, port: int) -> bool:
    """Say where the cloudpipe of a network is reached; False when another network's is reached there."""
    given = {"network_id": network_id, "address": address, "port": port}
    if conn.execute(_TAKEN, given).scalar_one():
        return False
    conn.execute(_PUBLISH, given)
    return True
