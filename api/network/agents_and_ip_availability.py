"""Usage of addresses by network, and the network services, for administrators."""

from uuid import NAMESPACE_URL, uuid5

from flask import Blueprint

from api.compute import validation
from api.network import views
from api.network.filters import fitting, one
from api.request_context import caller, compute, deployment
from climate.compute.network.operations import agents_and_ip_availability
from climate.compute.store.networks.ip_counts import IpCount

Body = dict[str, object]

blueprint = Blueprint("network-operators", __name__, url_prefix="/network/v2.0")

AVAILABILITY = "Network IP availability"


@blueprint.get("/network-ip-availabilities")
def availabilities() -> Body:
    """List the number of used addresses of each network: fixed IPs of servers, floating IPs of projects."""
    return {"network_ip_availabilities": fitting(_figures(), skipped=frozenset({"ip_version"}))}


@blueprint.get("/network-ip-availabilities/<network_id>")
def availability(network_id: str) -> Body:
    """Show the number of used addresses of one network."""
    return {"network_ip_availability": one(_figures(), network_id, AVAILABILITY)}


@blueprint.get("/agents")
def agents() -> Body:
    """List the network services with their state; as in Neutron, others than administrators see none."""
    validation.may_read()
    if not caller().is_admin:
        return {"agents": []}
    return {"agents": fitting(_agents())}


@blueprint.get("/agents/<agent_id>")
def agent(agent_id: str) -> Body:
    """Show one network service."""
    return {"agent": one(_agents(), agent_id, "Agent")}


def _figures() -> list[Body]:
    validation.may_administer()
    return [_figure(row) for row in agents_and_ip_availability.addresses_in_use(compute())]


def _figure(row: IpCount) -> Body:
    counts = {"total_ips": row.total, "used_ips": row.used}
    of_subnet = {"subnet_id": row.subnet_id, "subnet_name": row.name, "cidr": row.cidr, "ip_version": 4}
    seen = {"id": row.id, "network_id": row.id, "network_name": row.name, **counts}
    return seen | {"subnet_ip_availability": [of_subnet | counts]} | views.whose(row.project_id)


def _agents() -> list[Body]:
    validation.may_administer()
    return [_agent(row) for row in agents_and_ip_availability.services(compute())]


def _agent(row: Body) -> Body:
    return {
        "id": str(uuid5(NAMESPACE_URL, f"climate:network-service/{row['host']}")),
        "agent_type": "Network service",
        "binary": "nova-network",
        "host": row["host"],
        "alive": row["up"],
        "admin_state_up": True,
        "availability_zone": deployment().settings.default_availability_zone,
        "heartbeat_timestamp": f"{row['beat_at']:%Y-%m-%d %H:%M:%S}",
        "configurations": {"networks": row["networks"]},
    }
