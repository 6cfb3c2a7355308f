"""Body of a sign-in: proof and scope, and the path of what is wrong."""

from typing import Any

import pytest

from api.identity.sign_in_bodies import Password, Secret, Token, sign_in
from climate.domain.errors import InvalidInput, NotAuthenticated
from climate.identity.authentication.sign_in import UNSCOPED
from climate.identity.models import NameOrId

USER = {"name": "u", "domain": {"name": "Default"}, "password": "p"}
PASSWORD = {"methods": ["password"], "password": {"user": USER}}
PROJECT = {"project": {"name": "demo", "domain": {"id": "default"}}}


def body(identity: Any, **more: Any) -> dict[str, Any]:
    return {"auth": {"identity": identity, **more}}


def test_proofs() -> None:
    user, project = (
        NameOrId(name="u", domain=NameOrId(name="Default")),
        NameOrId(name="demo", domain=NameOrId(id="default")),
    )
    assert sign_in(body(PASSWORD, scope=PROJECT)) == (Password(user, "p"), project)
    assert sign_in(body({"methods": ["token"], "token": {"id": "t"}}, scope="unscoped")) == (Token("t"), UNSCOPED)
    by_id = {"methods": ["application_credential"], "application_credential": {"id": "c", "secret": "s"}}
    assert sign_in(body(by_id, scope={})) == (Secret(NameOrId(id="c"), None, "s"), None)
    by_name = {"name": "c", "secret": "s", "user": {"id": "u"}}
    asked = {"methods": ["application_credential"], "application_credential": by_name}
    assert sign_in(body(asked)) == (Secret(NameOrId(name="c"), NameOrId(id="u"), "s"), None)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "auth must be an object"),
        ({"auth": {}}, "auth.identity must be an object"),
        (body({"methods": ["password", "totp"]}), 'auth.identity.methods must be ["password"]'),
        (body({"methods": ["password"]}), "auth.identity.password must be an object"),
        (body({"methods": ["token"], "token": {"id": 5}}), "auth.identity.token.id must be a text"),
        (body({**PASSWORD, "password": {"user": {}}}), "auth.identity.password.user.name must be a text"),
        (
            body({**PASSWORD, "password": {"user": {"id": "u"}}}),
            "auth.identity.password.user.password must be a text",
        ),
        (body(PASSWORD, scope={"domain": {"id": "default"}}), "auth.scope must be a project or the system"),
        (body(PASSWORD, scope={"system": {"all": 1}}), "auth.scope.system.all must be true"),
        (body(PASSWORD, scope={"system": True}), "auth.scope.system.all must be true"),
        (body(PASSWORD, scope={"project": 5}), "auth.scope.project must be an object"),
        (body(PASSWORD, scope={"project": {"id": 5}}), "auth.scope.project.id must be a text"),
    ],
)
def test_refusal_names_the_path(given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        sign_in(given)
    assert str(refused.value).startswith(says)


def test_a_domain_without_name_and_scope_of_a_credential_are_not_authenticated() -> None:
    for domain in ({}, {"id": 5}, {"name": ""}):
        with pytest.raises(NotAuthenticated):
            sign_in(body({**PASSWORD, "password": {"user": USER | {"domain": domain}}}))
    by_id = {"methods": ["application_credential"], "application_credential": {"id": "c", "secret": "s"}}
    with pytest.raises(NotAuthenticated, match="cannot request a scope"):
        sign_in(body(by_id, scope=PROJECT))
