"""Tokens that are kept: one login for many commands, and never a token of another cloud, user or password."""

import json
import stat
import time
from pathlib import Path

import pytest

from climate.cli.connection.clouds import CloudEntry
from climate.cli.connection.token_cache import Kept, TokenCache, folder_of
from tests.cli.conftest import Cli, write_clouds
from tests.cli.fake_server import PASSWORD, Wire

LOGIN = "/identity/v3/auth/tokens"


def cloud(url: str = "http://a/v3", user: str = "ada", password: str = "p", project: str = "x") -> CloudEntry:
    methods = {"methods": ["password"], "password": {"user": {"name": user, "password": password}}}
    return CloudEntry(url, methods, {"project": {"name": project}})


def logins(wire: Wire) -> int:
    return len([asked for asked in wire.asked if (asked.method, asked.path) == ("POST", LOGIN)])


def test_one_login_serves_many_commands(cli: Cli, wire: Wire, environ: dict[str, str]) -> None:
    for _ in range(3):
        assert cli("lease", "list").code == 0
    assert logins(wire) == 1
    (kept,) = Path(environ["HOME"]).rglob("*.json")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700
    assert PASSWORD not in kept.read_text()


def test_a_refused_token_is_dropped_and_replaced(cli: Cli, wire: Wire) -> None:
    assert cli("lease", "list").code == 0
    wire.tokens.clear()
    assert cli("lease", "list").code == 0
    assert cli("lease", "list").code == 0
    assert logins(wire) == 2


def test_another_password_needs_a_login(cli: Cli, wire: Wire, tmp_path: Path) -> None:
    assert cli("lease", "list").code == 0
    write_clouds(tmp_path, wire.url, password="guessed")
    assert cli("lease", "list").code == 4


def test_relative_times_are_reckoned_from_the_server_with_a_kept_token(cli: Cli, wire: Wire) -> None:
    assert cli("lease", "list").code == 0
    assert cli("lease", "create", "one", "--end", "+6h", "--hosts", "1").code == 0
    assert wire.sent("POST", "/reservation/v1/leases").body["end_date"] == "2030-01-01T18:00:00Z"
    assert logins(wire) == 1


@pytest.mark.parametrize(
    "other", [cloud(url="http://b/v3"), cloud(user="bob"), cloud(password="q"), cloud(project="y")]
)
def test_a_token_is_of_one_cloud_user_project_and_password(tmp_path: Path, other: CloudEntry) -> None:
    cache = TokenCache(tmp_path / "new")
    cache.keep(cloud(), Kept("t", {"a": 1}), 3600)
    assert cache.find(cloud()) == Kept("t", {"a": 1})
    assert cache.find(other) is None


def test_a_token_that_ends_soon_or_from_the_future_is_not_used(tmp_path: Path) -> None:
    cache = TokenCache(tmp_path)
    cache.keep(cloud(), Kept("t", {}), 30)
    assert cache.find(cloud()) is None
    cache.keep(cloud(), Kept("t", {}), 3600)
    (path,) = tmp_path.glob("*.json")
    content = json.loads(path.read_text())
    for change in ({"ends": time.time() + 10}, {"begun": time.time() + 1000}, {"digest": "0"}, {"begun": None}):
        path.write_text(json.dumps({**content, **change}))
        assert cache.find(cloud()) is None
    path.write_text("[" * 50_000)
    assert cache.find(cloud()) is None


def test_a_dropped_token_is_gone(tmp_path: Path) -> None:
    cache = TokenCache(tmp_path)
    cache.keep(cloud(), Kept("t", {}), 3600)
    cache.drop(cloud())
    assert cache.find(cloud()) is None
    assert list(tmp_path.iterdir()) == []
    cache.drop(cloud())


def test_without_a_home_or_a_usable_folder_nothing_is_kept(tmp_path: Path) -> None:
    assert folder_of({}) is None
    assert folder_of({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/climate/tokens")
    assert folder_of({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) == Path("/h/.cache/climate/tokens")
    TokenCache(None).keep(cloud(), Kept("t", {}), 3600)
    assert TokenCache(None).find(cloud()) is None
    file = tmp_path / "file"
    file.write_text("")
    TokenCache(file).keep(cloud(), Kept("t", {}), 3600)
    assert TokenCache(file).find(cloud()) is None
