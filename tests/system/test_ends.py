"""Every way in which a lease may end, with processes as servers: policy, grace, and a lease that follows.

All twelve run at once on one stack, each on a host of its own.  What is to be
seen from outside is written down whenever it changes; the tests read that.
"""

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

import psycopg
import pytest

from climate.compute.virt.guest_folders import Homes
from tests.system.api_client import Api, host_lease, moment
from tests.system.conftest import furnish
from tests.system.stack import Stack, await_so

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

COMPUTE = "/compute/v2.1"
POLICIES, GRACES, FOLLOWING = ("terminate", "recycle", "release"), (0, 8), (False, True)
SECONDS_UNTIL_THE_END = 15
SECONDS_BETWEEN = 15
"""Between the end for good of a lease and the start of the one that follows."""

SETTINGS = {"CLIMATE_RECYCLE_LEAD": "7", "CLIMATE_POOLS_SECONDS": "1", "CLIMATE_MINUTES_BEFORE_END": "0"}


class Seen(NamedTuple):
    """What there is to see of a case at one moment."""

    status: str
    """Of the lease."""
    closed: bool
    """Its grace has begun."""
    pool: str
    """Of its host, by the books."""
    alive: bool
    """The process that is its server."""
    next_status: str = ""
    """Of the lease that follows."""


@dataclass
class Case:
    policy: str
    grace: int
    follows: bool
    host: str
    lease: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)
    server: str = ""
    seen: list[Seen] = field(default_factory=list)
    refused: int = 0
    """What somebody is told who boots in the lease's pool during its grace."""

    @property
    def pool(self) -> str:
        return str(self.lease["reservations"][0]["id"])

    @property
    def final(self) -> Seen:
        """How it is to be in the end."""
        if self.follows:
            return Seen("TERMINATED", self.grace > 0, "lent", False, "ACTIVE")
        pool = {"terminate": "reservation", "recycle": "recycling", "release": "multi-tenant"}[self.policy]
        return Seen("TERMINATED", self.grace > 0, pool, self.policy != "terminate")


CASES = [
    Case(policy, grace, follows, f"end-{place}")
    for place, (policy, grace, follows) in enumerate(product(POLICIES, GRACES, FOLLOWING), start=1)
]
BY_NAME = {f"{one.policy}{'-grace' * bool(one.grace)}{'-followed' * one.follows}": one for one in CASES}


@dataclass
class Stage:
    """The stack, and who acts on it."""

    stack: Stack
    admin: Api
    member: Api
    guests: Homes | None = None

    def make(self, body: dict[str, Any]) -> dict[str, Any]:
        answer = self.member.ask("POST", "/v1/leases", body)
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()["lease"]
        return made

    def status(self, path: str) -> str:
        return str(self.member.read(path)["server"]["status"])

    def boot(self, case: Case) -> Any:
        image = self.member.read("/image/v2/images")["images"][0]["id"]
        flavors = self.member.read(f"{COMPUTE}/flavors")["flavors"]
        flavor = next(each["id"] for each in flavors if each["name"] == "m1.tiny")
        server = {"name": case.host, "imageRef": image, "flavorRef": flavor, "networks": "auto"}
        body = {"server": server, "OS-SCH-HNT:scheduler_hints": {"reservation": case.pool}}
        return self.member.ask("POST", f"{COMPUTE}/servers", body, **{"OpenStack-API-Version": "compute 2.79"})

    def begin(self, case: Case) -> None:
        """A lease of the case's host that is ACTIVE, with a server that runs."""
        made = self.admin.ask("POST", "/v1/os-hosts", {"name": case.host})
        assert made.status_code == 201, made.text
        body = host_lease(case.host, "now", time.time() + 7200)
        body["reservations"][0] |= _only(case.host) | {"on_end": case.policy, "grace_period": case.grace}
        case.lease = self.make(body)
        path = f"/v1/leases/{case.lease['id']}"
        await_so(lambda: self.member.read(path)["lease"]["status"] == "ACTIVE", 120, "the start of a lease")
        answer = self.boot(case)
        assert answer.status_code == 202, answer.text
        case.server = answer.json()["server"]["id"]
        await_so(lambda: self.status(f"{COMPUTE}/servers/{case.server}") == "ACTIVE", 120, "a server")

    def end(self, case: Case, at: int) -> None:
        """Let the lease end then, and another one follow it soon after."""
        answer = self.member.ask("PUT", f"/v1/leases/{case.lease['id']}", {"end_date": moment(at)})
        assert answer.status_code == 200, answer.text
        if case.follows:
            start = at + case.grace + SECONDS_BETWEEN
            body = host_lease(f"after {case.host}", start, start + 3600)
            body["reservations"][0] |= _only(case.host)
            case.after = self.make(body)

    def watch(self, cases: Sequence[Case]) -> bool:
        """Write down what has changed; whether each case is as it is to be in the end."""
        with psycopg.connect(self.stack.database_url.replace("+psycopg", ""), autocommit=True) as conn:
            rows = {row[0]: row[1:] for row in conn.execute(LOOK)}
            pools = dict(conn.execute("SELECT hypervisor_hostname, pool FROM hosts").fetchall())
        for case in cases:
            status, closed = rows[case.lease["id"]]
            next_status = rows[case.after["id"]][0] if case.after else ""
            seen = Seen(status, bool(closed), pools[case.host], self.is_alive(case), next_status)
            if not case.seen or case.seen[-1] != seen:
                case.seen.append(seen)
                if (seen.status, seen.closed) == ("ACTIVE", True):
                    case.refused = self.boot(case).status_code
        return all(case.seen[-1] == case.final for case in cases)

    def is_alive(self, case: Case) -> bool:
        if self.guests is None:
            self.guests = Homes(next(self.stack.home.rglob(case.server)).parent)
        return self.guests.pid(case.server) is not None


LOOK = """
    SELECT l.id::text, l.status,
        (SELECT e.status = 'DONE' FROM events e WHERE e.lease_id = l.id AND e.kind = 'close_lease')
    FROM leases l
"""


def _only(host: str) -> dict[str, Any]:
    return {"hypervisor_properties": f'["==", "$hypervisor_hostname", "{host}"]'}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stack = Stack(tmp_path_factory.mktemp("ends"), SETTINGS)
    furnish(stack.home, tuple(case.host for case in CASES))
    try:
        stack.start()
        one = Stage(stack, Api(stack.home, "climate"), Api(stack.home, "climate-demo"))
        yield one
        one.admin.close()
        one.member.close()
    finally:
        result = stack.stop()
    assert result == 0, stack.tail()
    assert stack.left() == []


@pytest.fixture(scope="module")
def story(stage: Stage) -> Stage:
    """All cases, from their beginning to where they come to rest."""
    with ThreadPoolExecutor(4) as several:
        list(several.map(stage.begin, CASES))
        at = int(time.time()) + SECONDS_UNTIL_THE_END
        list(several.map(lambda case: stage.end(case, at), CASES))
    deadline = time.monotonic() + 150
    while not stage.watch(CASES) and time.monotonic() < deadline:
        threading.Event().wait(0.1)
    return stage


def _told(case: Case) -> str:
    return "\n".join(map(str, case.seen))


@pytest.mark.parametrize("name", BY_NAME)
def test_it_ends_as_agreed(story: Stage, name: str) -> None:
    case = BY_NAME[name]
    assert case.seen[-1] == case.final, _told(case)
    assert case.seen[0][:4] == ("ACTIVE", False, "lent", True), _told(case)


@pytest.mark.parametrize("name", [name for name, case in BY_NAME.items() if case.grace])
def test_servers_go_on_in_the_grace_and_nothing_is_booted(story: Stage, name: str) -> None:
    case = BY_NAME[name]
    in_grace = [seen for seen in case.seen if (seen.status, seen.closed) == ("ACTIVE", True)]
    assert in_grace, _told(case)
    assert all(seen.alive and seen.pool == "lent" for seen in in_grace), _told(case)
    assert 400 <= case.refused < 500


@pytest.mark.parametrize("name", [name for name, case in BY_NAME.items() if case.policy == "terminate"])
def test_no_server_survives_a_lease_that_terminates_them(story: Stage, name: str) -> None:
    case = BY_NAME[name]
    assert not [seen for seen in case.seen if seen.status == "TERMINATED" and seen.alive], _told(case)


@pytest.mark.parametrize("name", [name for name, case in BY_NAME.items() if case.policy != "terminate"])
def test_servers_go_on_until_the_host_is_needed(story: Stage, name: str) -> None:
    case = BY_NAME[name]
    waits = "multi-tenant" if case.policy == "release" and not case.follows else "recycling"
    assert [seen for seen in case.seen if (seen.status, seen.pool, seen.alive) == ("TERMINATED", waits, True)], _told(
        case
    )


@pytest.mark.parametrize("name", [name for name, case in BY_NAME.items() if case.follows])
def test_the_lease_that_follows_starts_on_time(story: Stage, name: str) -> None:
    case = BY_NAME[name]
    history = story.member.read(f"/v1/leases/{case.after['id']}/history")["history"]
    finished = [entry["body"]["outcome"] for entry in history if entry["kind"] == "EventFinished"]
    assert finished == ["OK"]
    assert story.member.read(f"/v1/leases/{case.after['id']}")["lease"]["degraded"] is False


def test_a_recycling_host_goes_home_when_its_last_server_is_gone(story: Stage) -> None:
    waiting = [case for case in CASES if case.policy == "recycle" and not case.follows]
    for case in waiting:
        assert story.member.ask("DELETE", f"{COMPUTE}/servers/{case.server}").status_code == 204
    known = story.stack.database_url.replace("+psycopg", "")

    def home() -> bool:
        with psycopg.connect(known) as conn:
            pools = dict(conn.execute("SELECT hypervisor_hostname, pool FROM hosts").fetchall())
        return all(pools[case.host] == "reservation" for case in waiting)

    await_so(home, 60, "the way home")


def test_cloud_and_books_agree(story: Stage) -> None:
    checked = story.stack.run("journal", "check")
    assert checked.returncode == 0, checked.stdout + checked.stderr

    def agreed() -> bool:
        found = story.admin.read(f"{COMPUTE}/os-aggregates")["aggregates"]
        there = {host: each["name"] for each in found for host in each["hosts"]}
        return all(there.get(case.host) == _where(case) for case in CASES)

    await_so(agreed, 30, "the cloud to follow the books")


def _where(case: Case) -> str | None:
    if case.follows:
        return str(case.after["reservations"][0]["id"])
    return None if case.policy == "release" else "freepool"
