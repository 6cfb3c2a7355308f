"""Who gets in, what is refused at the door, and what every answer carries."""

import io
import json
import re
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from api.path_aliases import canonical, without_project
from tests.api.echo_views import APIS
from tests.identity.identity_factory import Asker, Place

ID = re.compile(r"req-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
SHAPES: dict[str, Callable[[Any, int], bool]] = {
    "reservation": lambda body, code: (
        body == {"error_code": code, "error_message": body["error_message"], "error_name": code}
    ),
    "compute": lambda body, code: len(body) == 1 and next(iter(body.values()))["code"] == code,
    "identity": lambda body, code: body["error"]["code"] == code and bool(body["error"]["title"]),
    "image": lambda body, code: body["error"]["code"] == code and bool(body["error"]["title"]),
    "network": lambda body, code: body["NeutronError"].keys() == {"type", "message", "detail"},
}


def basic(text: str) -> dict[str, str]:
    return {"Authorization": "Basic " + b64encode(text.encode()).decode()}


@pytest.mark.parametrize("prefix", APIS.values())
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Auth-Token": ""},
        {"X-Auth-Token": "notused"},
        {"X-Auth-Token": "garbage"},
        {"X-Auth-Token": "gAAAAAB" + "x" * 300},
        {"X-Auth-Token": "TRUNCATED"},
        {"X-Auth-Token": "TOKEN,TOKEN"},
        {"Authorization": "Bearer TOKEN"},
        {"X-Subject-Token": "TOKEN"},
        {"X-User-Id": "admin", "X-Roles": "admin", "X-Identity-Status": "Confirmed"},
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic"},
        basic("demo"),
        basic(":"),
        {"Authorization": "Basic " + b64encode(b"\xff:\xff").decode()},
    ],
)
def test_without_a_valid_proof_it_is_401(app: Flask, demo: Asker, prefix: str, headers: dict[str, str]) -> None:
    sent = {key: value.replace("TOKEN", demo.token) for key, value in headers.items()}
    if headers.get("X-Auth-Token") == "TRUNCATED":
        sent["X-Auth-Token"] = demo.token[:-8]
    for _ in range(2):
        answer = Asker(app).ask("POST", f"{prefix}/echo", json={}, headers=sent)
        assert answer.status_code == 401
        assert answer.json["error"]["title"] == "Unauthorized"
        assert answer.headers["WWW-Authenticate"] == 'Keystone uri="http://127.0.0.1:8000/identity/v3"'


def test_two_authorization_headers_are_400(app: Flask, here: Place) -> None:
    one = basic(f"demo:{here.password('demo')}")["Authorization"]
    answer = Asker(app).ask("POST", "/v1/echo", json={}, headers={"Authorization": f"{one},{one}"})
    assert answer.status_code == 400


def test_basic_is_a_proof_and_a_token_goes_before_it(app: Flask, demo: Asker, here: Place) -> None:
    right, wrong = basic(f"demo:{here.password('demo')}"), basic("demo:wrong")
    assert Asker(app).ask("POST", "/v1/echo", json={}, headers=right).json["user"] == "demo"
    assert Asker(app, "notused").ask("POST", "/v1/echo", json={}, headers=right).json["user"] == "demo"
    assert demo.ask("POST", "/v1/echo", json={}, headers=wrong).status_code == 200


@pytest.mark.parametrize(("api", "prefix"), APIS.items())
def test_a_reader_may_not_write(signed_in: Callable[[str], Asker], api: str, prefix: str) -> None:
    answer = signed_in("reader").ask("PUT", f"{prefix}/write")
    assert answer.status_code == 403
    assert SHAPES[api](answer.json, 403)
    assert signed_in("demo").ask("PUT", f"{prefix}/write").status_code == 200


@pytest.mark.parametrize(("api", "prefix"), APIS.items())
@pytest.mark.parametrize(
    ("kind", "status", "retry"),
    [
        ("InvalidPeriod", 400, None),
        ("Forbidden", 403, None),
        ("NotFound", 404, None),
        ("NotEnoughHosts", 409, None),
        ("Busy", 409, "1"),
        ("PreconditionFailed", 412, None),
        ("KeyReused", 422, None),
        ("TooManyAttempts", 429, "60"),
        ("Unavailable", 503, "1"),
    ],
)
def test_errors_in_the_shape_of_their_api(
    demo: Asker, api: str, prefix: str, kind: str, status: int, retry: str | None
) -> None:
    answer = demo.ask("GET", f"{prefix}/fail/{kind}")
    assert (answer.status_code, answer.headers.get("Retry-After")) == (status, retry)
    assert SHAPES[api](answer.json, status)


def test_compute_names_the_kind_of_error(demo: Asker) -> None:
    def key(kind: str) -> str:
        return next(iter(demo.ask("GET", f"/compute/v2.1/fail/{kind}").json))

    kinds = {
        kind: key(kind) for kind in ("InvalidInput", "Forbidden", "NotFound", "Conflict", "Unavailable", "Strange")
    }
    assert list(kinds.values()) == [
        "badRequest",
        "forbidden",
        "itemNotFound",
        "conflictingRequest",
        "serviceUnavailable",
        "computeFault",
    ]


@pytest.mark.parametrize("prefix", APIS.values())
def test_what_nobody_foresaw_is_500_without_a_word_of_it(demo: Asker, log: io.StringIO, prefix: str) -> None:
    answer = demo.ask("GET", f"{prefix}/fail/Strange")
    assert answer.status_code == 500
    assert "engine" not in answer.text
    line = next(json.loads(line) for line in log.getvalue().splitlines() if "unforeseen" in line)
    assert line["request_id"] == answer.headers["x-openstack-request-id"]
    assert "the inside of the engine" in line["exception"]
    assert "hunter2" not in log.getvalue()


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("DO $$ BEGIN RAISE SQLSTATE '40P01'; END $$", 503),
        ("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$", 503),
        ("DO $$ BEGIN RAISE SQLSTATE '23P01'; END $$", 503),
        ("DO $$ BEGIN RAISE SQLSTATE '25006'; END $$", 503),
        ("DO $$ BEGIN RAISE SQLSTATE '57014'; END $$", 503),
        ("SELECT pg_terminate_backend(pg_backend_pid())", 503),
        ("SELECT 99999999999999999999::int", 400),
        ("SELECT 1 FROM nowhere", 500),
    ],
)
def test_errors_of_the_database(demo: Asker, statement: str, status: int) -> None:
    answer = demo.ask("GET", f"/reservation/v1/sql/{statement}")
    assert answer.status_code == status
    assert ("Retry-After" in answer.headers) == (status == 503)
    assert "SELECT" not in answer.text


@pytest.mark.parametrize(("api", "prefix"), APIS.items())
def test_unknown_paths_and_methods(app: Flask, api: str, prefix: str) -> None:
    asker = Asker(app)
    for path in (f"{prefix}/nowhere", f"/{api}/v9", f"{prefix}//echo"):
        assert asker.ask("GET", path).status_code == 404
    wrong = asker.ask("DELETE", f"{prefix}/echo")
    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "POST")
    assert asker.ask("OPTIONS", f"{prefix}/echo").status_code == 405
    if api == "reservation":
        assert wrong.json.keys() == {"error", "error_message"}
        assert wrong.json["error"] == 405
    else:
        assert SHAPES[api](wrong.json, 405)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("text/xml", 406),
        ("application/xml, text/html", 406),
        ("application/json;q=0", 406),
        ("text/xml, application/json;q=0.5", 200),
        ("application/*", 200),
        ("*/*", 200),
        ("", 200),
        (None, 200),
    ],
)
def test_accept(demo: Asker, accept: str | None, status: int) -> None:
    headers = {} if accept is None else {"Accept": accept}
    answer = demo.ask("POST", "/v1/echo", json={}, headers=headers)
    assert answer.status_code == status
    assert answer.content_type == "application/json"


@pytest.mark.parametrize("query", ["a=%00", "%00=a", "a=1&b=x%00y"])
def test_a_query_with_u0000_is_400(demo: Asker, query: str) -> None:
    assert demo.ask("POST", f"/v1/echo?{query}", json={}).status_code == 400


def test_a_path_with_u0000_is_404(demo: Asker) -> None:
    assert demo.ask("GET", "/v1/fail/%00").status_code == 404


@pytest.mark.parametrize("limit", ["-1", "0", "00", "abc", "1.5", "", "+5", "٣", "1e3", " 5"])
def test_a_limit_that_is_none_is_400(demo: Asker, limit: str) -> None:
    answer = demo.ask("GET", "/v1/pages", query_string={"limit": limit})
    assert answer.status_code == 400
    assert "limit must be" in answer.json["error_message"]


def test_pages(demo: Asker) -> None:
    def ask(query: str) -> Any:
        return demo.ask("GET", f"/v1/pages?{query}")

    assert [len(ask(query).json["rows"]) for query in ("", "limit=5", "limit=1000000000", f"limit={'9' * 50}")] == [
        1000,
        5,
        1000,
        1000,
    ]
    second = ask("limit=2&marker=row1&name=a%26b").json
    assert second["rows"] == ["row2", "row3"]
    assert second["links"] == [{"rel": "next", "href": "http://here/rows?name=a%26b&limit=2&marker=row3"}]
    assert ask("marker=row1498").json == {"rows": ["row1499"], "links": []}
    assert ask("marker=nobody").status_code == 400


def test_every_answer_has_an_id_of_its_own(app: Flask, demo: Asker) -> None:
    answers = [
        demo.ask("POST", "/v1/echo", json={}),
        demo.ask("GET", "/v1/fail/Strange"),
        Asker(app).ask("GET", "/nowhere"),
        Asker(app).ask("POST", "/v1/echo"),
    ]
    ids = [answer.headers["x-openstack-request-id"] for answer in answers]
    assert len(set(ids)) == len(ids)
    assert all(ID.fullmatch(one) for one in ids)
    assert answers[0].json["id"] == ids[0]


def test_an_inbound_id_is_kept_for_the_logs_when_it_is_one(demo: Asker, log: io.StringIO) -> None:
    good = "req-0b7f2c52-8f2c-4c86-9e5d-5a7d3b0f7a10"
    for given in (good, "req-short", "req-" + "x" * 36, "x" * 5000):
        demo.ask("POST", "/v1/echo", json={}, headers={"X-OpenStack-Request-ID": given})
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [line.get("global_request_id") for line in lines] == [good, None, None, None]
    assert all(line["request_id"] != good for line in lines)


@pytest.mark.parametrize(
    ("path", "is_"),
    [
        ("/v1/leases", "/reservation/v1/leases"),
        ("/v1", "/reservation/v1"),
        ("/v1/leases.json", "/reservation/v1/leases"),
        ("/reservation/v1/leases/x.json", "/reservation/v1/leases/x"),
        ("/", "/reservation"),
        ("/versions", "/reservation"),
        ("/v1.json", "/v1.json"),
        ("/v10/leases", "/v10/leases"),
        ("/openapi.json", "/openapi.json"),
        ("/compute/v2.1/os-keypairs/a.json", "/compute/v2.1/os-keypairs/a.json"),
    ],
)
def test_other_spellings_of_a_path(path: str, is_: str) -> None:
    assert canonical(path) == is_


@pytest.mark.parametrize(
    ("path", "is_", "project"),
    [
        ("/reservation/v1/p1/leases", "/reservation/v1/leases", "p1"),
        ("/reservation/v1/p1/leases/x/history", "/reservation/v1/leases/x/history", "p1"),
        ("/reservation/v1/leases/plugins", "/reservation/v1/leases/plugins", None),
        ("/reservation/v1/leases/leases", "/reservation/v1/leases/leases", None),
        ("/reservation/v1/p1/nowhere", "/reservation/v1/p1/nowhere", None),
        ("/reservation/v1//leases", "/reservation/v1//leases", None),
        ("/reservation/v1/leases", "/reservation/v1/leases", None),
        ("/compute/v2.1/p1/leases", "/compute/v2.1/p1/leases", None),
    ],
)
def test_a_project_may_stand_before_the_noun(path: str, is_: str, project: str | None) -> None:
    assert without_project(path, ("leases", "plugins")) == (is_, project)


def test_only_discovery_and_health_are_public(app: Flask) -> None:
    public = {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        if getattr(app.view_functions[rule.endpoint], "public", False)
        for method in (rule.methods or set()) - {"HEAD"}
    }
    assert {path for method, path in public if method == "GET"} >= {"/identity", "/identity/v3", "/healthz", "/readyz"}
    assert {(method, path) for method, path in public if method != "GET"} == {("POST", "/identity/v3/auth/tokens")}
    # The secret in the path of a calendar stands for a token.
    words = {path for _, path in public} - {"/reservation/v1/calendar/<secret>.ics"}
    assert not [path for path in words if "<" in path or (path.count("/") > 2 and "auth/tokens" not in path)]


@pytest.mark.parametrize("path", ["/identity", "/identity/", "/identity/v3", "/identity/v3/"])
def test_discovery_needs_no_token(app: Flask, path: str) -> None:
    answer = Asker(app).ask("GET", path)
    assert answer.status_code in (200, 300)
    assert "http://127.0.0.1:8000/identity/v3/" in answer.text
