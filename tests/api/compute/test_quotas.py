"""Quotas and limits of projects over the API."""

from typing import Any

from tests.api.compute.api_clients import Person, World, done, message

C = "/compute/v2.1"
OWN = f"{C}/os-quota-sets/project"


def test_an_administrator_sets_and_resets_quotas(there: World, admin: Person, member: Person) -> None:
    changed = done(admin("PUT", OWN, {"quota_set": {"instances": 2, "ram": -1, "server_groups": "4"}}))["quota_set"]
    assert (changed["instances"], changed["ram"], changed["server_groups"], changed["cores"]) == (2, -1, 4, 200)
    assert member.get(OWN)["quota_set"] == {"id": "project"} | changed
    limits = member.get(f"{C}/limits")["limits"]["absolute"]
    assert (limits["maxTotalInstances"], limits["maxTotalRAMSize"], limits["maxServerGroups"]) == (2, -1, 4)
    assert member.boot(min_count=2, max_count=2).status_code == 202
    assert "2" in message(member.boot(), 403, "forbidden")
    assert member.get(f"{OWN}/defaults")["quota_set"]["instances"] == 50
    assert done(admin("DELETE", OWN), 202) is None
    assert member.get(OWN)["quota_set"]["instances"] == 50
    assert member.boot().status_code == 202


CLASS = f"{C}/os-quota-class-sets/default"


def test_the_default_class_has_the_limits_of_projects_without_their_own(
    there: World, admin: Person, member: Person, stranger: Person
) -> None:
    done(admin("PUT", OWN, {"quota_set": {"cores": 200}}))
    assert admin.get(CLASS)["quota_class_set"]["instances"] == 50
    given = {"instances": 1, "cores": 30, "floating_ips": 3, "metadata_items": 228}
    changed = done(admin("PUT", CLASS, {"quota_class_set": given}))["quota_class_set"]
    assert changed.items() >= given.items()
    assert admin.get(CLASS)["quota_class_set"] == {"id": "default"} | changed
    shown = member.get(OWN)["quota_set"]
    assert (shown["instances"], shown["cores"], shown["floating_ips"], shown["ram"]) == (1, 200, 3, 512000)
    for path in (f"{OWN}/defaults", f"{C}/os-quota-sets/other/defaults"):
        assert member.get(path)["quota_set"].items() >= {"instances": 1, "cores": 30}.items()
    assert member.get("/network/v2.0/quotas/project/default")["quota"]["floatingip"] == 3
    assert member.boot().status_code == 202
    assert "1 of 1" in message(member.boot(), 403, "forbidden")
    assert stranger.boot().status_code == 202
    done(admin("PUT", OWN, {"quota_set": {"instances": 2}}))
    assert member.boot().status_code == 202
    done(admin("DELETE", OWN), 202)
    assert member.get(OWN)["quota_set"]["instances"] == 1


def test_a_class_has_the_limits_of_the_microversion(admin: Person) -> None:
    def shown(version: str) -> set[str]:
        headers = {"OpenStack-API-Version": f"compute {version}"}
        return set(done(admin("GET", CLASS, headers=headers))["quota_class_set"])

    networks = {"fixed_ips", "floating_ips", "security_groups", "security_group_rules"}
    files = {"injected_files", "injected_file_content_bytes", "injected_file_path_bytes"}
    groups = {"server_groups", "server_group_members"}
    always = {"id", "instances", "cores", "ram", "key_pairs", "metadata_items"}
    assert shown("2.1") == always | networks | files
    assert shown("2.50") == always | groups | files
    assert shown("2.57") == always | groups


def test_a_class_is_set_by_administrators_and_its_limits_are_checked(admin: Person, member: Person) -> None:
    assert message(member("GET", CLASS), 403, "forbidden")
    assert message(member("PUT", CLASS, {"quota_class_set": {"instances": 1}}), 403, "forbidden")
    for wrong in (*NO_QUOTAS, {"force": True}, {"server_groups": 3}):
        assert message(admin("PUT", CLASS, {"quota_class_set": wrong}), 400, "badRequest"), wrong
    assert message(admin("PUT", f"{C}/os-quota-class-sets/{'x' * 300}", {"quota_class_set": {}}), 400, "badRequest")
    done(admin("PUT", f"{C}/os-quota-class-sets/gold", {"quota_class_set": {"instances": 1}}))
    assert admin.get(CLASS)["quota_class_set"]["instances"] == 50


def test_what_is_used_is_shown_and_not_undercut(admin: Person, member: Person) -> None:
    member.booted(min_count=2, max_count=2)
    done(member("POST", f"{C}/os-server-groups", {"server_group": {"name": "g", "policies": ["affinity"]}}))
    shown = member.get(f"{OWN}/detail")["quota_set"]
    assert {name: shown[name]["in_use"] for name in ("instances", "cores", "ram", "server_groups")} == {
        "instances": 2,
        "cores": 2,
        "ram": 1024,
        "server_groups": 1,
    }
    limits = admin.get(f"{C}/limits?tenant_id=project&reserved=1")["limits"]["absolute"]
    assert (limits["totalInstancesUsed"], limits["totalServerGroupsUsed"]) == (2, 1)
    for name in ("instances", "cores", "server_groups"):
        assert "already used" in message(admin("PUT", OWN, {"quota_set": {name: 0}}), 400, "badRequest")
    assert member.get(OWN)["quota_set"]["instances"] == 50
    forced = done(admin("PUT", OWN, {"quota_set": {"instances": 1, "force": True}}))["quota_set"]
    assert forced["instances"] == 1


def test_quotas_are_set_by_administrators_and_those_of_others_are_theirs(member: Person, stranger: Person) -> None:
    assert message(member("PUT", OWN, {"quota_set": {"instances": 900}}), 403, "forbidden")
    assert message(member("DELETE", OWN), 403, "forbidden")
    for path in (OWN, f"{OWN}/detail", f"{C}/limits?tenant_id=project"):
        assert message(stranger("GET", path), 403, "forbidden")


NO_QUOTAS: list[Any] = [
    {"instances": -2},
    {"instances": "many"},
    {"instances": True},
    {"cores": 1.5},
    {"ram": 2**31},
    {"key_pairs": None},
    {"volumes": 1},
    {"metadata_items": -2},
    {"injected_files": "few"},
    {"force": "perhaps"},
]


def test_a_quota_that_cannot_be_is_refused(admin: Person) -> None:
    for wrong in NO_QUOTAS:
        assert message(admin("PUT", OWN, {"quota_set": wrong}), 400, "badRequest")
        assert message(admin("PUT", f"{OWN}?user_id=u", {"quota_set": {"cores": 1}}), 400, "badRequest")
        assert admin.get(OWN)["quota_set"] == {"id": "project"} | {
            **dict.fromkeys(("injected_files", "injected_file_content_bytes", "injected_file_path_bytes"), 0),
            "instances": 50,
            "cores": 200,
            "ram": 512000,
            "key_pairs": 100,
            "metadata_items": 128,
            "server_groups": 10,
            "server_group_members": 10,
            "fixed_ips": -1,
            "floating_ips": 10,
            "security_groups": 10,
            "security_group_rules": 100,
        }


FIXED = {
    "metadata_items": 256,
    "injected_files": 10,
    "injected_file_content_bytes": 20480,
    "injected_file_path_bytes": 512,
    "security_groups": 20,
    "security_group_rules": 20,
}


def test_limits_that_are_the_same_for_all_are_accepted_and_stay(admin: Person) -> None:
    before = admin.get(OWN)["quota_set"]
    changed = done(admin("PUT", OWN, {"quota_set": FIXED | {"cores": 7}}))["quota_set"]
    assert before | {"cores": 7} == {"id": "project"} | changed
    for version, name in (("2.57", "injected_files"), ("2.36", "security_groups")):
        headers = {"OpenStack-API-Version": f"compute {version}"}
        answer = admin("PUT", OWN, {"quota_set": {name: 1}}, headers=headers)
        assert f"{name!r} cannot be set" in message(answer, 400, "badRequest")


def test_older_clients_see_the_limits_of_their_time(member: Person) -> None:
    def keys(version: str) -> set[str]:
        return set(member.get(f"{C}/limits", version)["limits"]["absolute"])

    assert {"maxImageMeta", "maxPersonality"} <= keys("2.1")
    assert keys("2.39") & {"maxImageMeta", "maxPersonality"} == {"maxPersonality"}
    assert not keys("2.57") & {"maxImageMeta", "maxPersonality"}
