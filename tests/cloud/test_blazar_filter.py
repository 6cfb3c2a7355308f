"""A Nova with blazar-nova's BlazarFilter: what the filter reads of pools, and preemptible servers on free hosts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from climate.cloud import FREEPOOL, Cloud, NotYet
from tests.cloud.nova import Nova, nova

pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # of the SDK's own code

N1, N2 = "n1.example.org", "n2.example.org"
SPOT: dict[str, Any] = {"original_name": "spot", "extra_specs": {"blazar:preemptible": "True"}}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[tuple[Nova, Cloud]]:
    with nova(tmp_path, blazar_filter=True) as found:
        yield found


def passes(there: Nova, host: str, project_id: str, hint: str | None = None, *, preemptible: bool = False) -> bool:
    """Whether the filter lets a server of a project onto a host, with its own options but for preemptibles."""
    aggregates = [one for one in there.aggregates.values() if host in one["hosts"]]
    zones = [(one, str(one["metadata"].get("availability_zone", ""))) for one in aggregates]
    pools = [one for one, zone in zones if zone.startswith("blazar_") or one["name"] == "freepool"]
    if hint is not None:
        named = next((one["metadata"] for one in pools if one["name"] == hint), None)
        return named is not None and (project_id in named or named.get("blazar:owner") == project_id)
    return [one["name"] for one in pools] == ["freepool"] if preemptible else not pools


def test_the_filter_lets_the_project_in_by_its_hint_and_nobody_else(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    cloud.lend("r1", "demo", [N1], 1)
    assert {"availability_zone": "blazar_r1", "demo": "blazar:project"}.items() <= there.of("r1")["metadata"].items()
    assert passes(there, "n1", "demo", "r1")
    assert not passes(there, "n1", "demo")
    assert not passes(there, "n1", "other", "r1")
    cloud.close("r1", 2)
    assert not passes(there, "n1", "demo", "r1")
    assert not passes(there, "n1", "demo")
    cloud.lend("r1", "demo", [N1], 3)
    assert passes(there, "n1", "demo", "r1")
    cloud.take_back("r1", [N1], 4)
    assert cloud.pools() == {FREEPOOL: {N1}}
    assert not passes(there, "n1", "demo", "r1")


def test_an_administrator_lets_another_project_in(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    cloud.lend("r1", "demo", [N1], 1)
    there.of("r1")["metadata"]["friend"] = "blazar:project"
    cloud.lend("r1", "demo", [N1], 2)
    assert passes(there, "n1", "friend", "r1")
    cloud.close("r1", 3)
    assert not passes(there, "n1", "friend", "r1")


def test_preemptible_servers_go_before_their_host_is_allocated(there: Nova, cloud: Cloud) -> None:
    for host in (N1, N2):
        cloud.enrol(host, 1)
    assert passes(there, "n1", "other", preemptible=True)
    there.run("spot-1", N1, flavor=SPOT)
    there.run("spot-2", N2, flavor=SPOT)
    with pytest.raises(NotYet, match="1 preemptible servers are being deleted"):
        cloud.lend("r1", "demo", [N1], 1)
    assert set(there.servers) == {"spot-2"}
    assert there.of(FREEPOOL)["hosts"] == ["n1", "n2"]
    assert there.of("r1")["hosts"] == [], "Nova refuses a new zone to a host with servers"
    cloud.lend("r1", "demo", [N1], 1)
    assert cloud.pools() == {FREEPOOL: {N2}, "r1": {N1}}
    assert not passes(there, "n1", "other", preemptible=True)
    there.run("own", N1, flavor=SPOT)
    cloud.lend("r1", "demo", [N1], 2)
    assert "own" in there.servers, "what the owner boots in his own pool stays"


def test_preemptible_servers_that_arrive_meanwhile_are_deleted_too(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)

    def arrive(verb: str) -> None:
        if verb == "add_host" and len(arrived) < 2:
            arrived.append(f"spot-{len(arrived)}")
            there.run(arrived[-1], N1, flavor=SPOT)

    arrived: list[str] = []
    there.before = arrive
    for _ in range(2):
        with pytest.raises(NotYet, match="cannot join its pool yet"):
            cloud.lend("r1", "demo", [N1], 1)
        with pytest.raises(NotYet, match="1 preemptible servers are being deleted"):
            cloud.lend("r1", "demo", [N1], 1)
    cloud.lend("r1", "demo", [N1], 1)
    assert (cloud.pools(), there.servers) == ({FREEPOOL: set(), "r1": {N1}}, {})


def test_a_server_that_was_on_no_host_yet_is_deleted_after_its_host_joined(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)

    def build(verb: str) -> None:
        if there.of("r1")["hosts"]:
            there.run("spot", N1, flavor=SPOT)

    there.after = build
    with pytest.raises(NotYet, match="1 preemptible servers are being deleted"):
        cloud.lend("r1", "demo", [N1], 1)
    there.after = lambda verb: None
    assert there.of("r1")["hosts"] == ["n1"]
    cloud.lend("r1", "demo", [N1], 1)
    assert (cloud.pools(), there.servers) == ({FREEPOOL: set(), "r1": {N1}}, {})


def test_a_server_whose_deletion_is_complete_meanwhile_is_no_error(there: Nova, cloud: Cloud) -> None:
    cloud.enrol(N1, 1)
    there.run("spot", N1, flavor=SPOT)
    there.gone.add("spot")
    with pytest.raises(NotYet, match="1 preemptible servers are being deleted"):
        cloud.lend("r1", "demo", [N1], 1)
    del there.servers["spot"]
    cloud.lend("r1", "demo", [N1], 1)
    assert cloud.pools() == {FREEPOOL: set(), "r1": {N1}}
