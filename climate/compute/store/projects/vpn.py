"""Rows of VPNs: authorities, certificates of users, and the servers that are cloudpipes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Text, and_, bindparam, cast, delete, exists, func, or_, select, text, update
from sqlalchemy import insert as insert_into
from sqlalchemy.dialects.postgresql import INET
from sqlalchemy.dialects.postgresql import insert as upsert

from climate.compute.store.tables import vpn
from climate.compute.store.tables.networks import addresses, networks, vifs
from climate.compute.store.tables.servers import servers
from climate.database.advisory_locks import Subject

_authorities, _certificates = vpn.authorities, vpn.certificates
_serial, _revoked_at = _certificates.c.serial, _certificates.c.revoked_at

_SIGNED = _certificates.c.project_id == bindparam("project")
_WHOSE = bindparam("user", type_=Text)
_OF_USER = or_(_WHOSE.is_(None), _certificates.c.user_id == _WHOSE)
_IS_VALID = _certificates.c.expires_at > bindparam("now")

_KEEP_AUTHORITY = upsert(_authorities).on_conflict_do_nothing()

_AUTHORITY = select(
    _authorities.c.project_id,
    _authorities.c.certificate,
    _authorities.c.sealed_key,
    _authorities.c.server_certificate,
    _authorities.c.sealed_server_key,
).where(_authorities.c.project_id == bindparam("project"))

_FORGET = delete(_authorities).where(_authorities.c.project_id == bindparam("project"))

_ADD = insert_into(_certificates)

_COUNT = select(func.count()).where(_SIGNED, _IS_VALID)

_LIST = (
    select(
        _serial,
        _certificates.c.project_id,
        _certificates.c.user_id,
        _certificates.c.name,
        _certificates.c.created_at,
        _certificates.c.expires_at,
        _revoked_at,
    )
    .where(_SIGNED, _OF_USER)
    .order_by(_certificates.c.created_at, _serial)
)

_REVOKE = (
    update(_certificates)
    .where(_SIGNED, _serial == bindparam("number"), _OF_USER)
    .values(revoked_at=func.coalesce(_revoked_at, bindparam("now")))
    .returning(_serial)
)

_REVOKED = select(_serial, _revoked_at).where(_SIGNED, _revoked_at.is_not(None), _IS_VALID).order_by(_serial)

# The server with the VPN's address of a network is its cloudpipe; nobody else gets that address.
_CLOUDPIPES = (
    select(
        networks.c.id.label("network_id"),
        networks.c.project_id,
        func.host(networks.c.vpn_private_address).label("internal_ip"),
        func.host(networks.c.vpn_public_address).label("public_ip"),
        networks.c.vpn_public_port.label("public_port"),
        servers.c.id.label("server_id"),
        servers.c.status,
        servers.c.task,
        servers.c.created_at,
    )
    .select_from(networks)
    .join(
        addresses,
        and_(addresses.c.network_id == networks.c.id, addresses.c.address == networks.c.vpn_private_address),
    )
    .join(servers, servers.c.id == addresses.c.server_id)
    .order_by(servers.c.created_at, servers.c.id)
)

_PLACE = (
    select(
        networks.c.id.label("network_id"),
        networks.c.project_id,
        cast(networks.c.cidr, Text).label("cidr"),
        func.host(addresses.c.address).label("address"),
        vifs.c.mac,
    )
    .select_from(vifs)
    .join(networks, networks.c.id == vifs.c.network_id)
    .join(addresses, and_(addresses.c.vif_id == vifs.c.id, addresses.c.address == networks.c.vpn_private_address))
    .where(vifs.c.server_id == bindparam("server_id"), networks.c.project_id.is_not(None))
    .order_by(vifs.c.place)
    .limit(1)
)

_CLIENTS = (
    select(
        func.host(func.min(addresses.c.address)).label("first"), func.host(func.max(addresses.c.address)).label("last")
    )
    .join(networks, networks.c.id == addresses.c.network_id)
    .where(
        networks.c.id == bindparam("network_id"),
        addresses.c.reserved,
        addresses.c.address > networks.c.dhcp_start,
        addresses.c.address < cast(func.host(func.broadcast(networks.c.cidr)), INET),
    )
)

# Signing for a project is serialized here, so that the number of certificates is exact.
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


def insert_authority(conn: Connection, made: Authority) -> Authority:
    """Insert the authority of a project unless it has one; return the stored one."""
    given = {name: getattr(made, name) for name in Authority.__slots__}
    conn.execute(_KEEP_AUTHORITY, given)
    result = authority(conn, made.project_id)
    assert result is not None
    return result


def authority(conn: Connection, project_id: str) -> Authority | None:
    """Return the authority of a project; None: it has none."""
    row = conn.execute(_AUTHORITY, {"project": project_id}).mappings().one_or_none()
    return Authority(**row) if row else None


def forget(conn: Connection, project_id: str) -> None:
    """Delete the authority of a project, and all its certificates."""
    conn.execute(_FORGET, {"project": project_id})


def alone(conn: Connection, project_id: str) -> None:
    """Serialize the signing for a project until the end of the transaction."""
    conn.execute(_ALONE, {"project_id": project_id})


def count(conn: Connection, project_id: str, now: datetime) -> int:
    """Return the number of unexpired certificates of a project, revoked ones included."""
    return int(conn.execute(_COUNT, {"project": project_id, "now": now}).scalar_one())


def add(conn: Connection, certificate: Mapping[str, object], now: datetime) -> None:
    """Insert a certificate: serial, project_id, user_id, name, expires_at."""
    conn.execute(_ADD, {**certificate, "created_at": now})


def certificates(conn: Connection, project_id: str, user_id: str | None = None) -> list[Row]:
    """Return the certificates of a project, or of one user in it, oldest first."""
    return [dict(row) for row in conn.execute(_LIST, {"project": project_id, "user": user_id}).mappings()]


def revoke(conn: Connection, project_id: str, serial: str, user_id: str | None, now: datetime) -> bool:
    """Revoke a certificate of a project, or of one user in it; False if it does not exist."""
    given = {"project": project_id, "number": serial, "user": user_id, "now": now}
    return conn.execute(_REVOKE, given).first() is not None


def revoked(conn: Connection, project_id: str, now: datetime) -> list[tuple[str, datetime]]:
    """Return serial numbers of revoked, unexpired certificates, and the times of their revocation."""
    rows = conn.execute(_REVOKED, {"project": project_id, "now": now})
    return [(row.serial, row.revoked_at) for row in rows]


def cloudpipes(conn: Connection, project_id: str | None = None) -> list[Row]:
    """Return the servers that are cloudpipes, of all projects or of one."""
    query = _CLOUDPIPES if project_id is None else _CLOUDPIPES.where(networks.c.project_id == project_id)
    return [dict(row) for row in conn.execute(query).mappings()]


def place(conn: Connection, server_id: str) -> Row | None:
    """Return the network of which a server is the cloudpipe, with its address and MAC there; None: it is none."""
    row = conn.execute(_PLACE, {"server_id": server_id}).mappings().one_or_none()
    return dict(row) if row else None


def clients(conn: Connection, network_id: str) -> tuple[str, str] | None:
    """Return the first and the last address of a network that are kept for clients; None: there are none."""
    row = conn.execute(_CLIENTS, {"network_id": network_id}).one()
    return None if row.first is None else (row.first, row.last)


def publish(conn: Connection, network_id: str, address: str, port: int) -> bool:
    """Set the public address of a network's cloudpipe; False if another network has it."""
    public = (networks.c.vpn_public_address == address, networks.c.vpn_public_port == port)
    if conn.scalar(select(exists().where(*public, networks.c.id != network_id))):
        return False
    values = {"vpn_public_address": address, "vpn_public_port": port}
    conn.execute(update(networks).where(networks.c.id == network_id).values(values))
    return True
