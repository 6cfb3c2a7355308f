"""climate storage, and leases of storage: what is sent, what is shown."""

from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_server import STORAGE_POOL, Wire

PATH, LEASES = "/reservation/v1/storage-pools", "/reservation/v1/leases"


def test_a_pool_is_registered(cli: Cli, wire: Wire) -> None:
    options = ("--class", "ssd", "--capacity", "500")
    ran = cli("storage", "create", "fast", *options, "-f", "value", "-c", "capacity_gb")
    assert (ran.code, ran.out) == (0, "500\n")
    sent = wire.sent("POST", PATH).body
    assert sent == {"name": "fast", "storage_class": "ssd", "backend": "local", "capacity_gb": 500}
    assert cli("storage", "create", "fast", *options, "--backend", "b", "--dry-run").code == 0
    assert wire.sent("POST", PATH).query == {"dry_run": "true"}


def test_pools_are_shown_changed_and_removed_by_name_or_id(cli: Cli, wire: Wire) -> None:
    assert cli("storage", "list", "-f", "value", "-c", "id").out == f"{STORAGE_POOL}\n"
    assert cli("storage", "show", "fast", "-f", "value", "-c", "id").out == f"{STORAGE_POOL}\n"
    assert cli("storage", "show", STORAGE_POOL).code == 0
    assert cli("storage", "show", "slow").code == 3
    assert cli("storage", "set", "fast", "--closed").code == 0
    assert wire.sent("PUT", f"{PATH}/{STORAGE_POOL}").body == {"closed": True}
    assert cli("storage", "set", "fast").code == 2
    assert cli("storage", "delete", "fast", STORAGE_POOL).code == 0
    assert [asked.path for asked in wire.asked if asked.method == "DELETE"] == [f"{PATH}/{STORAGE_POOL}"] * 2


@pytest.mark.parametrize("which", [(), ("fast",)])
def test_who_holds_them(cli: Cli, which: tuple[str, ...]) -> None:
    columns = ("-f", "value", "-c", "pool", "-c", "size_gb")
    assert cli("storage", "allocations", *which, *columns).out == "fast 5\n"


WANTED = {"resource_type": "storage:pool", "size_gb": 100, "storage_class": "ssd"}


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ((), {}),
        (("--volumes", "2"), {"volumes": 2}),
        (("--on-end", "keep", "--grace", "10m"), {"on_end": "keep", "grace_period": 600}),
    ],
)
def test_leases_of_storage(cli: Cli, wire: Wire, options: tuple[str, ...], more: dict[str, Any]) -> None:
    ran = cli("lease", "create", "one", "--for", "1h", "--storage", "100", "--storage-class", "ssd", *options)
    assert ran.code == 0, ran.err
    assert wire.sent("POST", LEASES).body["reservations"] == [{**WANTED, **more}]


@pytest.mark.parametrize(
    "options", [("--storage", "5"), ("--storage-class", "ssd"), ("--volumes", "2"), ("--storage", "0")]
)
def test_what_makes_no_sense_is_not_sent(cli: Cli, wire: Wire, options: tuple[str, ...]) -> None:
    assert cli("lease", "create", "one", "--for", "1h", *options).code == 2
    assert [asked for asked in wire.asked if asked.path == LEASES] == []


def test_more_storage_for_a_lease(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    assert cli("lease", "set", "one", "--storage", "200").code == 0
    sent = wire.sent("PUT", f"{LEASES}/{lease['id']}").body
    assert sent["reservations"] == [{"id": lease["reservations"][0]["id"], "size_gb": 200}]
    assert cli("lease", "set", "one", "--storage", "200", "--hosts", "2").code == 2
