"""Views that do nothing but what a test wants to see, under the prefix of every API."""

from typing import Any, cast

from flask import Flask
from sqlalchemy import text

from api import body, create_app, paging
from api.request_context import caller, identity, request_id
from climate.domain import errors
from climate.domain.policy import require
from tests.identity.identity_factory import Place

APIS = {
    "reservation": "/reservation/v1",
    "compute": "/compute/v2.1",
    "identity": "/identity/v3",
    "image": "/image/v2",
    "network": "/network/v2.0",
}


def echo() -> dict[str, Any]:
    return {"echo": body.read_object(), "user": caller().user_name, "id": request_id()}


def write() -> dict[str, Any]:
    require(caller(), "leases:post")
    return {}


def pages() -> dict[str, Any]:
    wanted = paging.page()
    found, more = paging.cut([f"row{number}" for number in range(1500)], wanted, str)
    links = paging.next_links("http://here/rows", found[-1], wanted) if more else []
    return {"rows": found, "links": links}


def fail(kind: str) -> dict[str, Any]:
    if kind == "Strange":
        raise RuntimeError("the inside of the engine, with password=hunter2")
    raise getattr(errors, kind)()


def sql(statement: str) -> dict[str, Any]:
    with identity().engine.begin() as conn:
        conn.execute(text(statement))
    return {}


def with_echo(deployment: Place) -> Flask:
    app = create_app(cast("Any", deployment))  # routes are added, which no other test is to have
    for name, prefix in APIS.items():
        app.add_url_rule(f"{prefix}/echo", f"{name}-echo", echo, methods=["POST"])
        app.add_url_rule(f"{prefix}/write", f"{name}-write", write, methods=["PUT"])
        app.add_url_rule(f"{prefix}/pages", f"{name}-pages", pages)
        app.add_url_rule(f"{prefix}/fail/<kind>", f"{name}-fail", fail)
        app.add_url_rule(f"{prefix}/sql/<path:statement>", f"{name}-sql", sql)
    return app
