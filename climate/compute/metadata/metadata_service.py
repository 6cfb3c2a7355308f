"""Metadata service: documents that a guest fetches from 169.254.169.254, in the formats of OpenStack and EC2.

The source address of a request identifies the server. No two networks share an address, and the host of a server drops
its packets with another source. The script of a cloudpipe contains private keys, and only its config drive has it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.errors import NotFound
from climate.compute.metadata import ec2_metadata, guest_metadata
from climate.compute.metadata.guest_metadata import GuestMetadata
from climate.compute.models.server import Server
from climate.compute.store.networks import fixed_ips
from climate.compute.store.servers import servers
from climate.database.connections import reading

LATEST = "latest"
OPENSTACK = "openstack"
OPENSTACK_VERSIONS = (
    *("2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15"),
    *("2016-06-30", "2016-10-06", "2017-02-22", "2018-08-27", LATEST),
)
"""Versions of Nova's metadata. Each version has the same documents, since clients ignore unknown keys."""
EC2_VERSIONS = (
    *("1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15"),
    *("2008-02-01", "2008-09-01", "2009-04-04", LATEST),
)
META_DATA, USER_DATA = "meta-data", "user-data"
PASSWORD = "password"  # noqa: S105  (the name of a document)

TEXT, JSON, BYTES = "text/plain; charset=utf-8", "application/json", "application/octet-stream"


@dataclass(frozen=True, slots=True)
class Document:
    """Content of an answer and its media type."""

    content: bytes
    kind: str


def document(compute: Compute, address: str, path: str) -> Document:
    """Return the document at a path for the server with this source address. Raise NotFound."""
    own = _of_address(compute, address)
    parts = tuple(part for part in path.split("/") if part)
    made = _openstack(own, parts[1:]) if parts[:1] == (OPENSTACK,) else _ec2(own, parts)
    if made is None:
        raise NotFound(f"There is no metadata at /{'/'.join(parts)}; GET / and GET /openstack list what there is.")
    return made


def server_at(conn: Connection, address: str) -> Server:
    """Return the server with this fixed address. Raise NotFound."""
    refusal = f"No server has the address {address}; send the request from a fixed address of a server."
    try:
        source = str(IPv4Address(address))
    except AddressValueError:
        raise NotFound(refusal) from None
    server_id = fixed_ips.server_at(conn, source)
    server = None if server_id is None else servers.get(conn, server_id)
    if server is None:
        raise NotFound(refusal)
    return server


def _of_address(compute: Compute, address: str) -> GuestMetadata:
    with reading(compute.engine) as conn:
        return guest_metadata.gathered(compute, conn, server_at(conn, address))


def _openstack(own: GuestMetadata, parts: tuple[str, ...]) -> Document | None:
    if not parts:
        return _text("\n".join(OPENSTACK_VERSIONS))
    documents = _documents(own)
    if parts[0] not in OPENSTACK_VERSIONS or len(parts) > 2:
        return None
    if len(parts) == 1:
        return _text("\n".join(documents))
    make = documents.get(parts[1])
    return None if make is None else make()


def _documents(own: GuestMetadata) -> Mapping[str, Callable[[], Document]]:
    documents: dict[str, Callable[[], Document]] = {
        "meta_data.json": lambda: _json(own.meta_data()),
        "network_data.json": lambda: _json(own.network_data()),
        "vendor_data.json": lambda: _json({}),
        PASSWORD: lambda: _text(own.password),
    }
    if own.user_data is not None:
        documents["user_data"] = lambda: _user_data(own)
    return documents


def _ec2(own: GuestMetadata, parts: tuple[str, ...]) -> Document | None:
    if not parts:
        return _text("\n".join(EC2_VERSIONS))
    version, *below = parts
    if version not in EC2_VERSIONS:
        return None
    if not below:
        return _text("\n".join([f"{META_DATA}/", *([USER_DATA] if own.user_data is not None else [])]))
    if below == [USER_DATA] and own.user_data is not None:
        return _user_data(own)
    return _entry(own, tuple(below[1:])) if below[0] == META_DATA else None


def _entry(own: GuestMetadata, path: tuple[str, ...]) -> Document | None:
    entry: ec2_metadata.Tree | str | None = ec2_metadata.tree(own)
    for part in path:
        entry = entry.get(part) if isinstance(entry, Mapping) else None
    if entry is None:
        return None
    return _text(entry if isinstance(entry, str) else ec2_metadata.listing(entry, path, own))


def _user_data(own: GuestMetadata) -> Document:
    return Document(own.user_data or b"", BYTES)


def _text(content: str) -> Document:
    return Document(content.encode(), TEXT)


def _json(content: Mapping[str, object]) -> Document:
    return Document(json.dumps(content).encode(), JSON)
