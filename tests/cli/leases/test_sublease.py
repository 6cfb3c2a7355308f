"""Commands of sub-leases: what is sent, and what is shown."""

import pytest

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

LEASES = "/reservation/v1/leases"
TO = ("--to-project", "p2")


def test_a_number_of_hosts_is_given(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("mine")
    path = f"{LEASES}/{lease['id']}/subleases"
    wire.recorded[path] = {"lease": {**lease, "name": "course"}}
    more = ("--to-user", "u2", "--on-end", "recycle", "--grace", "10m")
    ran = cli("lease", "sublet", "mine", "course", *TO, "--hosts", "2", "--for", "4h", *more, "--idempotency-key", "k")
    assert ran.code == 0
    assert "course" in ran.out
    sent = wire.sent("POST", path)
    assert sent.headers["Idempotency-Key"] == "k"
    body = {key: value for key, value in sent.body.items() if not key.endswith("_date")}
    assert body == {
        "name": "course", "project_id": "p2", "user_id": "u2", "hosts": 2, "on_end": "recycle", "grace_period": 600,
    }  # fmt: skip
    assert sent.body["start_date"] == "now"


def test_named_hosts_are_given_later(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("mine")
    path = f"{LEASES}/{lease['id']}/subleases"
    wire.recorded[path] = {"lease": lease}
    named = ("--host", "gpu-1", "--host", "gpu-2")
    assert cli("lease", "sublet", "mine", "course", *TO, *named, "--start", "+1d", "--end", "+2d").code == 0
    body = wire.sent("POST", path).body
    assert (body["host_names"], "hosts" in body, body["start_date"] == "now") == (["gpu-1", "gpu-2"], False, False)


@pytest.mark.parametrize(
    "options",
    [
        (*TO, "--for", "1h"),
        (*TO, "--for", "1h", "--hosts", "1", "--host", "gpu-1"),
        (*TO, "--hosts", "1"),
        (*TO, "--hosts", "1", "--for", "1h", "--end", "+2h"),
        ("--hosts", "1", "--for", "1h"),
        (*TO, "--hosts", "0", "--for", "1h"),
    ],
)
def test_wrong_options_are_refused(cli: Cli, wire: Wire, options: tuple[str, ...]) -> None:
    wire.add_lease("mine")
    assert cli("lease", "sublet", "mine", "course", *options).code == 2


def test_they_are_listed_and_shown(cli: Cli, wire: Wire) -> None:
    lease = wire.add_lease("mine")
    own = {**lease, "id": "0" * 32, "name": "course", "project_id": "p2"}
    wire.recorded[f"{LEASES}/{lease['id']}/subleases"] = {"subleases": [own]}
    listed = cli("lease", "subleases", "mine").out
    for text in ("course", "p2", own["id"]):
        assert text in listed
    lease["subleases"] = [{"id": own["id"], "hosts": 2}]
    lease["parent"] = {"lease_id": "f" * 32, "project_id": "p1"}
    shown = cli("lease", "show", "mine").out
    assert f"{own['id']}  2 x physical:host" in shown
    assert f"{'f' * 32}  of project p1" in shown
