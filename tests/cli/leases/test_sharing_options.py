"""Options that share a lease: what is sent, and what is shown."""

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

LEASES = "/reservation/v1/leases"


def test_a_new_lease_is_shared(cli: Cli, wire: Wire) -> None:
    options = ("--share-project", "p1", "--share-project", "p2", "--viewer", "u1", "--extender", "u2")
    assert cli("lease", "create", "one", "--for", "1h", "--hosts", "1", *options).code == 0
    assert wire.sent("POST", LEASES).body["sharing"] == {
        "projects": ["p1", "p2"], "viewers": ["u1"], "extenders": ["u2"],
    }  # fmt: skip


def test_a_change_adds_and_removes(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("one")
    lease["sharing"] = {"projects": ["p1"], "viewers": ["u1"], "extenders": []}
    assert cli("lease", "set", "one", "--share-project", "p2", "--unshare", "u1").code == 0
    sent = wire.sent("PUT", f"{LEASES}/{lease['id']}").body
    assert sent == {"sharing": {"projects": ["p1", "p2"], "viewers": [], "extenders": []}}


def test_who_is_not_named_cannot_be_removed(cli: Cli, wire: Wire) -> None:
    wire.add_lease("one")
    ran = cli("lease", "set", "one", "--unshare", "p9")
    assert (ran.code, "--unshare p9: the lease is not shared with it" in ran.err) == (2, True)


def test_series_are_shared_lease_by_lease(cli: Cli) -> None:
    repeated = ("--hosts", "1", "--repeat", "FREQ=DAILY;COUNT=2", "--viewer", "u1")
    ran = cli("lease", "create", "one", "--for", "1h", *repeated)
    assert (ran.code, "--repeat excludes the options of sharing" in ran.err) == (2, True)


def test_it_is_shown(cli: Cli, wire: Wire) -> None:
    wire.add_lease("one")["sharing"] = {"projects": ["p1"], "viewers": ["u1"], "extenders": ["u2"]}
    shown = cli("lease", "show", "one").out
    for line in ("shared_with", "project p1", "viewer u1", "extender u2"):
        assert line in shown
