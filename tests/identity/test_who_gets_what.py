"""Every route of identity, asked about others by nobody and by an ordinary user."""

from collections.abc import Mapping
from typing import Any

from tests.identity.identity_factory import Asker, Place, app_of

V3 = "/identity/v3"
USER, PROJECT = f"{V3}/users/<user_id>", f"{V3}/projects/<project_id>"
CREDENTIALS = f"{USER}/application_credentials"
CREDENTIAL = f"{CREDENTIALS}/<credential_id>"
ROLES = f"{PROJECT}/users/<user_id>/roles"
ROLE, TOKENS = f"{ROLES}/<role_id>", f"{V3}/auth/tokens"
SYSTEM_ROLES, TAGS = f"{V3}/system/users/<user_id>/roles", f"{PROJECT}/tags"
SYSTEM_ROLE, TAG = f"{SYSTEM_ROLES}/<role_id>", f"{TAGS}/<tag>"
DOMAIN, GROUP = f"{V3}/domains/<domain_id>", f"{V3}/groups/<group_id>"
MEMBER = f"{GROUP}/users/<user_id>"
IMPLIES = f"{V3}/roles/<role_id>/implies"
IMPLIED = f"{IMPLIES}/<implied_id>"
GROUP_ROLES, GROUP_SYSTEM_ROLES = f"{PROJECT}/groups/<group_id>/roles", f"{V3}/system/groups/<group_id>/roles"

FOR_ALL, FOR_ADMINS = (401, 200), (401, 403)
CATALOG = ("service", "endpoint", "region")
WRITES = ("GET", "PUT", "DELETE")

CATALOG_CHANGES = (
    *(("POST", f"{V3}/{noun}s") for noun in CATALOG),
    *((verb, f"{V3}/{noun}s/<_{noun}_id>") for noun in CATALOG for verb in ("PATCH", "DELETE")),
    ("PUT", f"{V3}/regions/<_region_id>"),
)

MATRIX: Mapping[tuple[str, str], tuple[int, int]] = {
    ("GET", f"{V3}/auth/catalog"): FOR_ALL,
    ("GET", f"{V3}/auth/domains"): FOR_ALL,
    ("GET", f"{V3}/auth/projects"): FOR_ALL,
    ("GET", f"{V3}/auth/system"): FOR_ALL,
    ("GET", TOKENS): FOR_ADMINS,
    ("DELETE", TOKENS): FOR_ADMINS,
    ("GET", f"{V3}/domains"): FOR_ALL,
    ("POST", f"{V3}/domains"): FOR_ADMINS,
    ("GET", DOMAIN): (401, 404),
    ("PATCH", DOMAIN): FOR_ADMINS,
    ("DELETE", DOMAIN): FOR_ADMINS,
    ("GET", f"{V3}/groups"): FOR_ADMINS,
    ("POST", f"{V3}/groups"): FOR_ADMINS,
    ("GET", GROUP): FOR_ADMINS,
    ("PATCH", GROUP): FOR_ADMINS,
    ("DELETE", GROUP): FOR_ADMINS,
    ("GET", f"{GROUP}/users"): FOR_ADMINS,
    ("GET", MEMBER): FOR_ADMINS,
    ("PUT", MEMBER): FOR_ADMINS,
    ("DELETE", MEMBER): FOR_ADMINS,
    ("GET", f"{USER}/groups"): FOR_ADMINS,
    **{(method, f"{place}/<role_id>"): FOR_ADMINS for method in WRITES for place in (GROUP_ROLES, GROUP_SYSTEM_ROLES)},
    **{("GET", place): FOR_ADMINS for place in (GROUP_ROLES, GROUP_SYSTEM_ROLES)},
    ("GET", f"{V3}/endpoints"): FOR_ALL,
    ("GET", f"{V3}/projects"): FOR_ADMINS,
    ("POST", f"{V3}/projects"): FOR_ADMINS,
    ("GET", PROJECT): (401, 404),
    ("PATCH", PROJECT): FOR_ADMINS,
    ("DELETE", PROJECT): FOR_ADMINS,
    ("GET", ROLES): FOR_ADMINS,
    ("GET", ROLE): FOR_ADMINS,
    ("PUT", ROLE): FOR_ADMINS,
    ("DELETE", ROLE): FOR_ADMINS,
    ("GET", f"{V3}/regions"): FOR_ALL,
    ("GET", f"{V3}/role_assignments"): FOR_ADMINS,
    ("GET", f"{V3}/roles"): FOR_ALL,
    ("POST", f"{V3}/roles"): FOR_ADMINS,
    ("GET", f"{V3}/roles/<role_id>"): FOR_ALL,
    ("PATCH", f"{V3}/roles/<role_id>"): FOR_ADMINS,
    ("DELETE", f"{V3}/roles/<role_id>"): FOR_ADMINS,
    ("GET", f"{V3}/role_inferences"): FOR_ALL,
    ("GET", IMPLIES): FOR_ALL,
    ("GET", IMPLIED): (401, 404),
    ("PUT", IMPLIED): FOR_ADMINS,
    ("DELETE", IMPLIED): FOR_ADMINS,
    ("GET", SYSTEM_ROLES): FOR_ADMINS,
    ("GET", SYSTEM_ROLE): FOR_ADMINS,
    ("PUT", SYSTEM_ROLE): FOR_ADMINS,
    ("DELETE", SYSTEM_ROLE): FOR_ADMINS,
    ("GET", TAGS): (401, 404),
    ("PUT", TAGS): FOR_ADMINS,
    ("DELETE", TAGS): FOR_ADMINS,
    ("GET", TAG): (401, 404),
    ("PUT", TAG): FOR_ADMINS,
    ("DELETE", TAG): FOR_ADMINS,
    ("GET", f"{V3}/endpoints/<endpoint_id>"): (401, 404),
    ("GET", f"{V3}/regions/<region_id>"): (401, 404),
    **dict.fromkeys(CATALOG_CHANGES, FOR_ADMINS),
    ("GET", f"{V3}/services"): FOR_ALL,
    ("GET", f"{V3}/services/<service_id>"): FOR_ALL,
    ("GET", f"{V3}/users"): FOR_ADMINS,
    ("POST", f"{V3}/users"): FOR_ADMINS,
    ("GET", USER): FOR_ADMINS,
    ("PATCH", USER): FOR_ADMINS,
    ("DELETE", USER): FOR_ADMINS,
    ("GET", f"{USER}/projects"): FOR_ADMINS,
    ("POST", f"{USER}/password"): FOR_ADMINS,
    ("GET", CREDENTIALS): FOR_ADMINS,
    ("POST", CREDENTIALS): FOR_ADMINS,
    ("GET", CREDENTIAL): FOR_ADMINS,
    ("DELETE", CREDENTIAL): FOR_ADMINS,
}
"""Route -> the answers to nobody and to an ordinary user, about the administrator."""

BODIES: Mapping[tuple[str, str], Any] = {
    ("POST", f"{V3}/projects"): {"project": {"name": "more"}},
    ("PATCH", PROJECT): {"project": {"enabled": False}},
    ("POST", f"{V3}/domains"): {"domain": {"name": "more"}},
    ("PATCH", DOMAIN): {"domain": {"enabled": False}},
    ("POST", f"{V3}/groups"): {"group": {"name": "more"}},
    ("PATCH", GROUP): {"group": {"name": "more"}},
    ("PUT", TAGS): {"tags": ["more"]},
    ("POST", f"{V3}/roles"): {"role": {"name": "more"}},
    ("PATCH", f"{V3}/roles/<role_id>"): {"role": {"name": "more"}},
    ("POST", f"{V3}/users"): {"user": {"name": "more"}},
    ("PATCH", USER): {"user": {"enabled": False}},
    ("POST", f"{USER}/password"): {"user": {"original_password": "x", "password": "another-password"}},
    ("POST", CREDENTIALS): {"application_credential": {"name": "more"}},
}


def test_nobody_learns_or_changes_anything_of_others(here: Place, admin: Asker, demo: Asker) -> None:
    names = _furnish(admin, demo)
    secrets = {
        "hidden-",
        *(names[mark] for mark in ("<user_id>", "<project_id>", "<credential_id>", "<domain_id>", "<group_id>")),
    }
    before = _seen(admin, names)
    assert set(MATRIX) == _routes(demo)
    for place, asker in enumerate((Asker(app_of(here)), demo)):
        found = {}
        for route in MATRIX:
            path = _path(route[1], names)
            subject = {"X-Subject-Token": admin.token} if route[1] == TOKENS else {}
            answer = asker.ask(route[0], path, json=BODIES.get(route), headers=subject)
            found[route] = answer.status_code
            assert not [text for text in secrets if text in answer.text and text not in path], route
        assert found == {route: statuses[place] for route, statuses in MATRIX.items()}
    assert _seen(admin, names) == before


def _routes(asker: Asker) -> set[tuple[str, str]]:
    """Method and path of all that needs a token."""
    app = asker.client.application
    return {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith(f"{V3}/") and not getattr(app.view_functions[rule.endpoint], "public", False)
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }


def _furnish(admin: Asker, demo: Asker) -> dict[str, str]:
    """The names of what the administrator is and has."""
    token: Any = admin.ask("GET", TOKENS, headers={"X-Subject-Token": admin.token}).json
    me, project = token["token"]["user"]["id"], token["token"]["project"]["id"]
    wanted = {"application_credential": {"name": "hidden-credential"}}
    made: Any = admin.ask("POST", f"{V3}/users/{me}/application_credentials", json=wanted).json
    domain: Any = admin.ask("POST", f"{V3}/domains", json={"domain": {"name": "hidden-domain"}}).json
    group: Any = admin.ask("POST", f"{V3}/groups", json={"group": {"name": "hidden-group"}}).json
    services: Any = demo.ask("GET", f"{V3}/services").json
    return {
        "<user_id>": me,
        "<project_id>": project,
        "<credential_id>": made["application_credential"]["id"],
        "<role_id>": "member",
        "<implied_id>": "service",
        "<tag>": "gpu",
        "<domain_id>": domain["domain"]["id"],
        "<group_id>": group["group"]["id"],
        "<service_id>": services["services"][0]["id"],
    }


def _path(rule: str, names: Mapping[str, str]) -> str:
    for mark, name in names.items():
        rule = rule.replace(mark, name)
    return rule


def _seen(admin: Asker, names: Mapping[str, str]) -> list[Any]:
    """What there is of users, projects, roles and the administrator's credentials."""
    lists = (f"{V3}/domains", f"{V3}/groups", f"{V3}/users", f"{V3}/projects", f"{V3}/role_assignments", CREDENTIALS)
    return [admin.ask("GET", _path(rule, names)).json for rule in lists]
