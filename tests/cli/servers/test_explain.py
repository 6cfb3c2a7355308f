"""Why a server is where it is, step by step."""

from typing import Any

from tests.cli.conftest import Cli
from tests.cli.fake_server import Wire

SIZES = {"servers": 2, "vcpus": 1, "ram_mb": 512, "disk_mb": 1024}
WEIGHERS = [{"name": "RAMWeigher", "multiplier": 1.0}, {"name": "IoOpsWeigher", "multiplier": -1.0}]
BEST = {"host": "h1", "node": "n1", "raw": [7466.0, 0.0], "normalised": [1.0, 0.0], "weight": 1.0}
NEXT = {"host": "h2", "node": "n2", "raw": [3434.0, 0.0], "normalised": [0.45995, 0.0], "weight": 0.45995}
GONE = {"host": "h3", "node": "n3", "why": "n3 does not have 512 MB usable ram, it only has 100.0 MB usable ram."}


def stage(name: str, start: int, end: int, *removed: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "start": start, "end": end, "removed": list(removed)}


PLACED: dict[str, Any] = {
    "made_at": "2030-01-01T12:00:00Z",
    "kind": "placed",
    "lost": [["Free memory 100.00 MB < requested 512 MB"]],
    "after": None,
    "error": None,
    "trail": {
        "asked": SIZES | {"flavor": "tiny", "ignore_hosts": ["h9"]},
        "hosts": 4,
        "considered": 3,
        "filters": [stage("RetryFilter", 3, 3), stage("RamFilter", 3, 2, GONE)],
        "weighers": WEIGHERS,
        "weighed": [BEST, NEXT],
        "later": [{"server": 1, **stage("RamFilter", 102, 1, GONE)}],
        "chosen": NEXT,
    },
}
RETRY: dict[str, Any] = {
    "made_at": "2030-01-01T12:00:05Z",
    "kind": "retry",
    "lost": [],
    "after": {"node": "n2", "host": "h2", "reason": "no more disk"},
    "error": "No valid host was found.",
    "trail": {"asked": SIZES, "hosts": 0, "filters": [], "later": [], "chosen": None, "refused": "hosts"},
}
LINES = [
    (1, "placed", "2030-01-01T12:00:00Z", "", "servers=2 flavor=tiny vcpus=1 ram_mb=512 disk_mb=1024"),
    (1, "lost", "", "", "Free memory 100.00 MB < requested 512 MB"),
    (1, "hosts", "", "4 -> 3", "ignore_hosts=h9"),
    (1, "filter", "RetryFilter", "3 -> 3", ""),
    (1, "filter", "RamFilter", "3 -> 2", ""),
    (1, "removed", "n3 (h3)", "", GONE["why"]),
    (1, "weighed", "n1 (h1)", "", "RAMWeigher 7466 -> 1 x 1; IoOpsWeigher 0 -> 0 x -1; total 1"),
    (1, "weighed", "n2 (h2)", "", "RAMWeigher 3434 -> 0.46 x 1; IoOpsWeigher 0 -> 0 x -1; total 0.46"),
    (1, "filter", "RamFilter", "102 -> 1", "for server 2 of the build"),
    (1, "removed", "n3 (h3)", "", GONE["why"]),
    (1, "removed", "100 more", "", ""),
    (1, "chosen", "n2 (h2)", "", "RAMWeigher 3434 -> 0.46 x 1; IoOpsWeigher 0 -> 0 x -1; total 0.46"),
    (2, "retry", "2030-01-01T12:00:05Z", "", "servers=2 vcpus=1 ram_mb=512 disk_mb=1024"),
    (2, "after", "n2 (h2)", "", "no more disk"),
    (2, "hosts", "", "0 -> 0", ""),
    (2, "refused", "hosts", "", "No valid host was found."),
]


def booted(cli: Cli, wire: Wire, *decisions: dict[str, Any]) -> str:
    wire.scheduling = {"reservation_id": "r-1", "decisions": list(decisions)}
    return str(cli("boot", "s1", "--flavor", "small", "--image", "cirros", "-f", "json").data["id"])


def test_each_step_of_each_decision_is_a_line(cli: Cli, wire: Wire) -> None:
    booted(cli, wire, PLACED, RETRY)
    told = cli("server", "explain", "s1", "-f", "csv").out.splitlines()
    assert told[0] == "decision,step,what,hosts,says"
    assert [line.replace('"', "") for line in told[1:]] == [",".join(map(str, line)) for line in LINES]
    table = cli("server", "explain", "s1").out
    assert all(str(cell) in table for line in LINES for cell in line)


def test_as_json_it_is_all_that_the_server_tells(cli: Cli, wire: Wire) -> None:
    server_id = booted(cli, wire, PLACED)
    told = cli("server", "explain", server_id, "-f", "json").data
    assert told == {"server_id": server_id, "reservation_id": "r-1", "decisions": [PLACED]}


def test_a_server_of_which_nothing_is_kept_is_no_failure(cli: Cli, wire: Wire) -> None:
    booted(cli, wire)
    ran = cli("server", "explain", "s1")
    assert (ran.code, ran.out) == (0, "")
    assert "is stored" in ran.err


def test_who_may_not_read_it_learns_what_he_may_read(cli: Cli, wire: Wire) -> None:
    booted(cli, wire, PLACED)
    wire.member = True
    ran = cli("server", "explain", "s1")
    assert ran.code == 4
    assert "climate server show" in ran.err


OVER_ZONES: dict[str, Any] = {
    "made_at": "2030-01-01T12:00:00Z",
    "kind": "zones",
    "lost": [],
    "after": None,
    "error": None,
    "trail": {
        "asked": SIZES,
        "zones": [
            {"zone_id": None, "name": None, "reason": "no host is left for it", "offered": 0, "weights": []},
            {
                "zone_id": 2,
                "name": "west",
                "reason": None,
                "offered": 2,
                "weights": [[0.25, 1002.5], [1, 1010]],
                "weight_offset": 1000.0,
                "weight_scale": 10.0,
            },
        ],
        "zone": {"zone_id": 2, "launch_index": 0},
        "later": [],
        "chosen": None,
    },
}


def test_the_answers_of_zones_tell_how_their_weights_were_changed(cli: Cli, wire: Wire) -> None:
    booted(cli, wire, OVER_ZONES)
    told = cli("server", "explain", "s1", "-f", "csv").out.splitlines()
    assert told[2:] == [
        "1,zone,this zone,0,no host is left for it",
        "1,zone,zone 2 (west),2,best 0.25; 1000 + 10 x 0.25 = 1002",
        "1,chosen,zone 2,,",
    ]
