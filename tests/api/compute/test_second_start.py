"""What the demo finds at a later start is left as it was."""

from api.request_context import DEPLOYMENT
from climate import bootstrap
from tests.api.compute.api_clients import SERVICE, Person, World, done

HOSTS = "/reservation/v1/os-hosts"


def test_a_host_that_somebody_put_to_another_use_stays_in_that(there: World, admin: Person) -> None:
    first = next(host for host in admin.get(HOSTS)["hosts"] if host["hypervisor_hostname"] == "gpu-1")
    done(admin("DELETE", f"{HOSTS}/{first['id']}"), 204)
    server = admin.booted(availability_zone=f"nova:{SERVICE}:gpu-1")
    there.settle()
    for _ in range(2):
        bootstrap.create_demo(there.app.extensions[DEPLOYMENT])
    assert [host["hypervisor_hostname"] for host in admin.get(HOSTS)["hosts"]] == ["gpu-2"]
    assert admin.status(server) == "ACTIVE"
    done(admin("DELETE", f"/compute/v2.1/servers/{server}"), 204)
    there.settle()
    bootstrap.create_demo(there.app.extensions[DEPLOYMENT])
    assert [host["hypervisor_hostname"] for host in admin.get(HOSTS)["hosts"]] == ["gpu-2", "gpu-1"]
