"""The ways in which the fake cloud breaks."""

import pytest

from climate.cloud import ACTIVE, FREEPOOL, RESERVED, CloudError, NotYet
from climate.cloud.fake import FakeCloud, host


@pytest.fixture
def cloud() -> FakeCloud:
    made = FakeCloud({name: host(name) for name in ("h1", "h2")})
    made.enrol("h1", 1)
    return made


def test_broken_it_does_nothing(cloud: FakeCloud) -> None:
    cloud.broken = True
    with pytest.raises(CloudError):
        cloud.lend("r1", "demo", ["h1"], 1)
    cloud.broken = False
    assert cloud.pools() == {FREEPOOL: {"h1"}}


def test_one_verb_can_fail_while_the_others_work(cloud: FakeCloud) -> None:
    cloud.failures["lend"] = CloudError("no")
    with pytest.raises(CloudError, match="no"):
        cloud.lend("r1", "demo", ["h1"], 1)
    assert cloud.pools() == {FREEPOOL: {"h1"}}


def test_an_effect_whose_answer_is_lost_happens_once(cloud: FakeCloud) -> None:
    cloud.unheard["lend"] = 1
    with pytest.raises(CloudError):
        cloud.lend("r1", "demo", ["h1"], 1)
    cloud.lend("r1", "demo", ["h1"], 1)
    assert cloud.effects["lend", "r1", 1] == 1
    assert cloud.doubled() == []
    assert cloud.owner("r1") == "demo"


def test_servers_wake_and_vanish_slowly(cloud: FakeCloud) -> None:
    cloud.looks_until_awake = cloud.looks_until_gone = 2
    server_id = cloud.boot("demo", "h2", status=RESERVED)
    cloud.wake(server_id, 1)
    cloud.wake(server_id, 1)
    seen = [cloud.server(server_id) for _ in range(3)]
    assert [(server.status, server.busy) for server in seen if server] == [
        (RESERVED, True),
        (RESERVED, True),
        (ACTIVE, False),
    ]
    cloud.delete_server(server_id, 1)
    cloud.delete_server(server_id, 2)
    assert [cloud.server(server_id) is None for _ in range(3)] == [False, False, True]
    assert cloud.effects["delete_server", server_id, 1] == 1
    assert cloud.effects["delete_server", server_id, 2] == 0


def test_a_slow_deletion_keeps_the_pool(cloud: FakeCloud) -> None:
    cloud.looks_until_gone = 1
    cloud.lend("r1", "demo", ["h1"], 1)
    server_id = cloud.boot("demo", "h1")
    cloud.delete_server(server_id, 2)
    with pytest.raises(NotYet):
        cloud.take_back("r1", ["h1"], 2)
    assert len(cloud.servers_in("r1")) == 1
    assert len(cloud.servers_in("r1")) == 0
    cloud.take_back("r1", ["h1"], 2)


def test_each_verb_is_watched_before_it_works(cloud: FakeCloud) -> None:
    seen: list[str] = []
    cloud.watch = seen.append
    cloud.pools()
    cloud.close("none", 1)
    assert seen == ["pools", "close"]
    assert cloud.calls[-2:] == [("pools", ""), ("close", "none")]
