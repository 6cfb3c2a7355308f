"""Answers that clients with strict schemas of Nova's answers accept."""

from climate.compute.nodes.services import IMAGE_ID
from tests.api.compute.api_clients import Person, World, done

C = "/compute/v2.1"


def test_a_new_aggregate_is_shown_without_hosts_and_metadata(admin: Person) -> None:
    made = done(admin("POST", f"{C}/os-aggregates", {"aggregate": {"name": "a", "availability_zone": "z"}}))[
        "aggregate"
    ]
    shown = admin.get(f"{C}/os-aggregates/{made['id']}")["aggregate"]
    assert {**made, "hosts": [], "metadata": {"availability_zone": "z"}} == shown


def test_requests_of_compute_have_the_id_under_the_name_of_nova(member: Person) -> None:
    answer = member("GET", f"{C}/servers")
    assert answer.headers["x-compute-request-id"] == answer.headers["x-openstack-request-id"]
    assert "x-compute-request-id" not in member("GET", "/image/v2/images").headers


def test_the_list_of_versions_is_no_choice(member: Person) -> None:
    assert member("GET", "/compute").status_code == 200


def test_the_last_lines_of_a_console_count_as_in_nova(there: World, member: Person) -> None:
    server_id = member.booted()
    there.settle()

    def output(length: int) -> str:
        return str(done(member.act(server_id, "os-getConsoleOutput", {"length": length}))["output"])

    everything = output(-1)
    assert everything.endswith("\n")
    assert output(1) == ""
    assert output(2) == everything.splitlines()[-1] + "\n"


def test_the_type_of_a_new_image_may_be_chosen(there: World, member: Person) -> None:
    server_id = member.booted()
    there.settle()
    headers = {"OpenStack-API-Version": "compute 2.45"}
    found = []
    for metadata in ({"image_type": "backup", "instance_uuid": "x"}, {}):
        body = {"createImage": {"name": "i", "metadata": metadata}}
        made = done(member("POST", f"{C}/servers/{server_id}/action", body, headers=headers), 202)["image_id"]
        there.settle()
        found.append(member.get(f"/image/v2/images/{made}"))
    assert [one["image_type"] for one in found] == ["backup", "snapshot"]
    assert {one["instance_uuid"] for one in found} == {server_id}
    assert {one["base_image_ref"] for one in found} == {IMAGE_ID}
