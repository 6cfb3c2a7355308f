"""What others have in an OpenStack, and how it looks: climate must leave all of it alone."""

from typing import Any

from tests.real_openstack import accounts
from tests.real_openstack.conftest import SECONDS, People
from tests.real_openstack.leases import STRANGER
from tests.system.stack import await_so

HOST = "h3"
"""Host of the strange server."""
ADDRESS = "203.0.113.40"


def create(people: People) -> None:
    """Create an aggregate, a private flavor, an image and an address of others, and a server on HOST."""
    compute, image, network = people.admin.compute, people.admin.image, people.admin.network
    aggregate = compute.create_aggregate(name="rack-7")
    compute.add_host_to_aggregate(aggregate, "h1")
    compute.set_aggregate_metadata(aggregate, rack="7")
    flavor = compute.create_flavor(name="strange", vcpus=1, ram=64, disk=1, is_public=False)
    project = people.users[STRANGER].current_project_id
    compute.flavor_add_tenant_access(flavor.id, project)
    image.create_image(name="strange", data=b"x", disk_format="raw", container_format="bare", visibility="public")
    outside = network.find_network(accounts.OUTSIDE).id
    network.create_ip(floating_network_id=outside, floating_ip_address=ADDRESS, project_id=project)
    force(people, HOST)


def force(people: People, host: str) -> str:
    """Boot a server of the administrator's project on a host that no filter is asked about; return its id."""
    wanted = {"image_id": people.image, "flavor_id": people.flavor, "networks": "none"}
    compute = people.admin.compute
    made = compute.create_server(name=f"strange-{host}", availability_zone=f"nova:{host}", **wanted)
    seen = people.await_status(made.id, "ACTIVE", "ERROR")
    assert (seen.status, seen.hypervisor_hostname) == ("ACTIVE", host), seen.fault
    return str(seen.id)


def await_gone(people: People, server_id: str) -> None:
    await_so(lambda: people.is_gone(server_id), SECONDS, "the deletion of a server")


def seen(people: People) -> dict[str, Any]:
    """Return the present state of all that `create` created."""
    compute = people.admin.compute
    servers = [each for each in people.servers() if each.name == f"strange-{HOST}"]
    flavors = [each for each in compute.flavors(is_public=None) if each.name == "strange"]
    return {
        "servers": [(each.id, each.status, each.hypervisor_hostname, dict(each.metadata)) for each in servers],
        "aggregates": [
            (each.id, list(each.hosts), dict(each.metadata)) for each in compute.aggregates() if each.name == "rack-7"
        ],
        "flavors": [(each.id, each.ram, compute.get_flavor_access(each.id)) for each in flavors],
        "images": [each.checksum for each in people.admin.image.images(name="strange")],
        "addresses": [
            (each.id, each.project_id, each.description, list(each.tags))
            for each in people.admin.network.ips(floating_ip_address=ADDRESS)
        ],
    }
