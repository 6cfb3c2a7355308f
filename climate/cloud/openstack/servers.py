"""Servers of the cloud, as the cloud interface describes them. A shelved server that sleeps is RESERVED."""

from collections.abc import Iterable
from datetime import datetime

from climate.cloud import ERROR, RESERVED, RUNNING, CloudServer
from climate.cloud.openstack.http import Body, Remote, unless_gone

SHELVED = ("SHELVED_OFFLOADED", "SHELVED")
GONE = ("DELETED", "SOFT_DELETED")

SLEEPS = "climate:reserved"
"""Metadata of a server that was shelved for a lease.

Any other shelved server may be unshelved for a lease too, but is never deleted for having none.
"""

TASK, NODE = "OS-EXT-STS:task_state", "OS-EXT-SRV-ATTR:hypervisor_hostname"


def find(remote: Remote, server_id: str) -> Body | None:
    """Return a server as the cloud describes it, or None if it does not exist."""
    answer = unless_gone(lambda: remote.get(f"/servers/{server_id}"))
    if answer is None or answer["server"]["status"] in GONE:
        return None
    result: Body = answer["server"]
    return result


def on(remote: Remote, hosts: Iterable[str]) -> list[Body]:
    """Return the servers of all projects on these hypervisors."""
    matching = [each for host in hosts for each in remote.each("/servers/detail", all_tenants="1", node=host)]
    wanted = set(hosts)
    return list({each["id"]: each for each in matching if each[NODE] in wanted}.values())


def asleep(remote: Remote) -> list[Body]:
    """Return the servers of all projects that sleep until their lease."""
    result = (each for status in SHELVED for each in remote.each("/servers/detail", all_tenants="1", status=status))
    return [each for each in result if each["status"] in SHELVED and each["metadata"].get(SLEEPS) == "true"]


def running_on(remote: Remote) -> frozenset[str]:
    """Return the hypervisors on which servers run, of all projects."""
    result = (each for status in RUNNING for each in remote.each("/servers/detail", all_tenants="1", status=status))
    return frozenset(each[NODE] for each in result if each["status"] in RUNNING and each.get(NODE))


def view(body: Body) -> CloudServer:
    """Return a server in the form of the cloud interface."""
    status = str(body["status"])
    return CloudServer(
        id=body["id"],
        name=body["name"],
        project_id=body["tenant_id"],
        status=RESERVED if status in SHELVED else status,
        host=body.get(NODE),
        busy=body.get(TASK) is not None,
        fault=body["fault"]["message"] if status == ERROR and body.get("fault") else None,
        created_at=datetime.fromisoformat(body["created"]),
    )
