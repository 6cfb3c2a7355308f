"""Ids of another project in every path of a page: not found, and nothing of the object is told."""

import re
from collections.abc import Iterator

from flask import Flask
from werkzeug.routing import Rule

from api.web.blueprint import blueprint
from tests.api.compute.api_clients import World
from tests.api.web.page_clients import Browser, signed_in

SECRET = "hidden-name"
UNOWNED = frozenset(
    {
        "filename",
        "version",
        "digest",
        "rest",
        "name",
        "host_id",
        "window_id",
        "event_id",
        "notice_id",
        "credential_id",
        "feed_id",
    }
)
"""Arguments that name no object of a project: files, pools and hosts, and what a user owns, tried in its own test."""


def rules(app: Flask) -> Iterator[tuple[str, Rule]]:
    """Yield the method and the rule of each page about an object of a project."""
    for rule in app.url_map.iter_rules():
        if rule.endpoint.startswith(f"{blueprint.name}.") and rule.arguments - UNOWNED:
            yield from ((method, rule) for method in ("GET", "POST") if method in (rule.methods or ()))


def furnished(member: Browser) -> dict[str, str]:
    """Return the id of an object of the member for each argument."""
    hold = str(member.submit("/ui/find?hosts=1&length=1h", "/ui/holds").location)
    taken = str(member.submit("/ui/find?hosts=1&length=1h", "/ui/holds").location)
    lease = str(member.submit(taken, f"{taken}/take", name=SECRET).location)
    repeated = "/ui/series/new?hosts=1&length=1h&every=day&times=2&earliest=2040-01-01T09:00"
    series = str(member.submit(repeated, "/ui/series", name=SECRET, make="all").location)
    server = str(member.submit("/ui/servers/new", "/ui/servers", name=SECRET).location)
    paths = {"hold_id": hold, "lease_id": lease, "series_id": series, "server_id": server}
    return {name: path.rpartition("/")[2] for name, path in paths.items()}


def test_objects_of_others_are_not_found_by_any_path(cloud: World) -> None:
    ids = furnished(signed_in(cloud.app, "member"))
    stranger = signed_in(cloud.app, "stranger")
    seen = set()
    for method, rule in rules(cloud.app):
        path = re.sub(r"<(?:\w+:)?(\w+)>", lambda part: ids[part[1]], rule.rule)
        fields = {
            "csrf_token": "secret",
            "name": "x",
            "by": "1h",
            "now": "1",
            "wish": "stop",
            "end": "2040-01-01T09:00",
        }
        answer = stranger.get(path, _status(path)) if method == "GET" else stranger.post(path, fields)
        assert answer.status_code == _status(path), f"{method} {path}: {answer.status_code}"
        assert SECRET not in answer.text, path
        seen |= rule.arguments
    assert seen == ids.keys()


def _status(path: str) -> int:
    """Return the status for a stranger; pages of administrators are refused whatever the id."""
    return 403 if path.endswith("/explain") else 404
