"""Metadata of a server for its guest: identity, public keys, networks and user data, in the formats of Nova."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from climate.compute.context import Compute
from climate.compute.metadata import network_data
from climate.compute.models.hostnames import hostname
from climate.compute.models.server import Server
from climate.compute.network.models import Vif
from climate.compute.network.network_options import NetworkOptions
from climate.compute.store.networks import fixed_ips
from climate.compute.store.servers import guest_passwords, servers


@dataclass(frozen=True, slots=True)
class GuestMetadata:
    """A server with the data that its guest reads at its start."""

    server: Server
    options: NetworkOptions
    key: tuple[str, str] | None
    """Name and public key of the key pair; None: the server has none."""
    vifs: Sequence[Vif]
    user_data: bytes | None
    password: str
    """Password that the guest posted; an empty text without one."""

    @property
    def hostname(self) -> str:
        """Return the DNS name of the server, with its domain."""
        return f"{hostname(self.server.name, self.server.id)}.{self.options.domain}"

    def meta_data(self) -> Mapping[str, object]:
        """Return the content of meta_data.json."""
        server = self.server
        return {
            "uuid": server.id,
            "name": server.name,
            "hostname": self.hostname,
            "launch_index": server.launch_index,
            "availability_zone": server.node_zone,
            "project_id": server.project_id,
            "meta": dict(server.metadata),
            **self._keys(),
        }

    def network_data(self) -> Mapping[str, object]:
        """Return the content of network_data.json."""
        return network_data.described(self.vifs, self.options)

    def _keys(self) -> Mapping[str, object]:
        if self.key is None:
            return {}
        name, public_key = self.key
        return {"public_keys": {name: public_key}, "keys": [{"name": name, "type": "ssh", "data": public_key}]}


def gathered(compute: Compute, conn: Connection, server: Server) -> GuestMetadata:
    """Return the metadata of a server as they are recorded now."""
    user_data, public_key = servers.boot_data(conn, server.id)
    return GuestMetadata(
        server=server,
        options=compute.network,
        key=(server.key_name, public_key.strip()) if server.key_name and public_key else None,
        vifs=fixed_ips.vifs_of(conn, [server.id]),
        user_data=None if user_data is None else base64.b64decode(user_data),
        password=guest_passwords.get(conn, server.id),
    )
