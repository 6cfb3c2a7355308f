"""Networks for tests about other things: flat ones, which have a host already."""

from ipaddress import IPv4Network

from sqlalchemy import Connection, text

from climate.compute.network import networks
from climate.compute.network.creation_request import CreationRequest
from climate.compute.network.network_options import NetworkOptions

HOST = "service-1"


def network(
    conn: Connection, label: str, cidr: str, manager: str = "flat", options: NetworkOptions | None = None
) -> str:
    """Make a network that is served; its id."""
    made = networks.create(conn, options or NetworkOptions(), CreationRequest(label, IPv4Network(cidr)), manager)[0].id
    conn.execute(text("UPDATE compute_networks SET host = :host WHERE id::text = :id"), {"host": HOST, "id": made})
    return made
