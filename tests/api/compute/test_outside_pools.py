"""Hosts that a reservation service outside this cloud lends, through the API of aggregates."""

from tests.api.compute.api_clients import Person, World, done, message
from tests.conftest import MEMBER, STRANGER

AGGREGATES = "/compute/v2.1/os-aggregates"
POOL = "7d3f4b0e-58a5-4a1e-9a84-0d7a8f3f9f11"


def act(admin: Person, number: int, **action: object) -> None:
    done(admin("POST", f"{AGGREGATES}/{number}/action", action))


def lent(admin: Person, project_id: str) -> int:
    """A pool with the node std-1, lent to a project; its number."""
    number = int(done(admin("POST", AGGREGATES, {"aggregate": {"name": POOL}}))["aggregate"]["id"])
    act(admin, number, set_metadata={"metadata": {"blazar:owner": project_id}})
    act(admin, number, add_host={"host": "std-1"})
    return number


def test_its_project_boots_there_and_nobody_else(there: World, admin: Person, member: Person, stranger: Person) -> None:
    lent(admin, MEMBER.project_id)
    mine = member.booted({"reservation": POOL})
    there.settle()
    seen = admin.get(f"/compute/v2.1/servers/{mine}")["server"]
    assert (seen["status"], seen["OS-EXT-SRV-ATTR:hypervisor_hostname"]) == ("ACTIVE", "std-1")
    assert POOL in message(stranger.boot({"reservation": POOL}), 404, "itemNotFound")
    assert member.status(member.booted()) == "ERROR"


def test_one_that_is_given_to_nobody_is_nobodys(admin: Person, member: Person) -> None:
    number = lent(admin, MEMBER.project_id)
    act(admin, number, set_metadata={"metadata": {"blazar:owner": "nobody"}})
    assert POOL in message(member.boot({"reservation": POOL}), 404, "itemNotFound")


def test_the_reservation_pool_and_ordinary_aggregates_are_allocated_to_nobody(admin: Person, member: Person) -> None:
    number = lent(admin, STRANGER.project_id)
    act(admin, number, set_metadata={"metadata": {"blazar:owner": None}})
    assert POOL in message(member.boot({"reservation": POOL}), 404, "itemNotFound")
    assert message(member.boot({"reservation": "freepool"}), 400, "badRequest")
