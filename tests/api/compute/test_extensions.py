"""Extensions of Compute by their aliases."""

from tests.api.compute.api_clients import Person

C = "/compute/v2.1/extensions"


def test_a_client_looks_up_an_extension(reader: Person) -> None:
    listed = reader.get(C)["extensions"]
    assert {one["name"] for one in listed} >= {"Hosts", "Servers", "CreateBackup"}
    assert all(reader.get(f"{C}/{one['alias']}")["extension"] == one for one in listed[:3])
    assert reader("GET", f"{C}/os-volumes").status_code == 404


def test_an_extension_has_a_route(reader: Person) -> None:
    paths = {rule.rule.removeprefix("/compute/v2.1/").partition("/")[0] for rule in reader.app.url_map.iter_rules()}
    for noun in ("os-aggregates", "os-hosts", "os-keypairs", "os-networks", "os-services", "os-tenant-networks"):
        assert (noun in paths, reader("GET", f"{C}/{noun}").status_code) == (True, 200)
