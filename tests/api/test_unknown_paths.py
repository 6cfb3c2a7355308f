"""Paths and methods without a route: the answer names them, and what would be right."""

from pathlib import Path

import pytest
from flask import Flask

from api.unknown_paths import LONGEST_PATH
from climate.context import Climate
from tests.api.reservation.api_clients import app_over


@pytest.fixture
def app(climate: Climate, tmp_path: Path) -> Flask:
    return app_over(climate, tmp_path)


def refusal(app: Flask, path: str, method: str = "GET") -> tuple[int, str]:
    answer = app.test_client().open(path, method=method, headers={"X-Auth-Token": "member"})
    return answer.status_code, str(answer.get_json()["error_message"])


@pytest.mark.parametrize(
    ("path", "near"),
    [
        ("/v1/leasez", "/v1/leases"),
        ("/reservation/v1/leasez", "/reservation/v1/leases"),
        ("/v1/os-host", "/v1/os-hosts"),
        ("/v1/leases/7d1f0a3e/histroy", "/v1/leases/7d1f0a3e/history"),
        ("/v1/pools/reservation/host", "/v1/pools/reservation/hosts"),
        ("/healtz", "/healthz"),
    ],
)
def test_a_misspelt_path_has_the_nearest_one(app: Flask, path: str, near: str) -> None:
    status, said = refusal(app, path)
    assert status == 404
    assert said.startswith(f"There is no path {path}: ")
    assert f"did you mean {near}?" in said


def test_the_end_of_a_path_has_the_whole_one(app: Flask) -> None:
    assert "did you mean /reservation/v1/leases?" in refusal(app, "/leases")[1]


@pytest.mark.parametrize("path", ["/nowhere/near", "/v1/leases/" + "x" * 5000, "/v1/ü/☃", "/" + "a/" * 400])
def test_a_path_like_no_other_has_the_documents(app: Flask, path: str) -> None:
    status, said = refusal(app, path)
    assert status == 404
    if "leases" not in path:
        assert "did you mean" not in said
        assert said.endswith("/openapi.json, /compute/openapi.json and /network/openapi.json list the paths")
        assert path[:LONGEST_PATH] in said
    assert len(said) < LONGEST_PATH + 200


def test_a_missing_method_has_those_that_are_possible(app: Flask) -> None:
    status, said = refusal(app, "/v1/leases", "PATCH")
    assert status == 405
    assert said.startswith("PATCH is not possible for /v1/leases; possible are ")
    assert "GET" in said
    assert "POST" in said


def test_a_thing_that_does_not_exist_is_no_unknown_path(app: Flask) -> None:
    status, said = refusal(app, "/v1/leases/7d1f0a3e")
    assert (status, "There is no path" in said) == (404, False)
