"""Never two leases on one host: many clients at once, over HTTP, against two web processes."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.system import allocation_oracle
from tests.system.api_client import Api, host_lease, moment
from tests.system.conftest import RACE_HOSTS
from tests.system.stack import Stack

CLIENTS = 16
SLOT = 600
"""Seconds; windows are whole slots, so that they meet, touch and overlap all the time."""
SLOTS = 24
FEW, MANY = 400, 5000
OURS = '["=", "$race", "yes"]'
FULL = "Not enough hosts available"


@dataclass
class Fight:
    """What the clients share: the leases that somebody may still have, and every answer."""

    first: float
    known: list[str] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, verb: str, answer: Any) -> None:
        """Count an answer; keep it when it is none that a fight for hosts explains."""
        status = answer.status_code
        fine = {"create": (201,), "change": (200, 404), "delete": (204, 404)}[verb]
        full = status == 409 and verb != "delete" and FULL in answer.text
        with self.lock:
            self.answers[verb, status] += 1
            if status not in fine and not full:
                self.wrong.append(f"{verb}: {status} {answer.text[:300]}")

    def window(self, chance: random.Random) -> tuple[float, float]:
        start = self.first + SLOT * chance.randrange(SLOTS)
        return start, start + SLOT * chance.randint(1, 6)


def _create(fight: Fight, api: Api, chance: random.Random) -> None:
    start, end = fight.window(chance)
    body = host_lease(f"race-{chance.random()}", start, end, chance.choice((1, 1, 1, 2, 3)), OURS)
    answer = api.ask("POST", "/v1/leases", body)
    fight.note("create", answer)
    if answer.status_code == 201:
        with fight.lock:
            fight.known.append(answer.json()["lease"]["id"])
            fight.made.append(fight.known[-1])


def _change(fight: Fight, api: Api, chance: random.Random) -> None:
    start, end = fight.window(chance)
    with fight.lock:
        lease_id = chance.choice(fight.known) if fight.known else ""
    if lease_id:
        dates = {"start_date": moment(start), "end_date": moment(end)}
        fight.note("change", api.ask("PUT", f"/v1/leases/{lease_id}", dates))


def _delete(fight: Fight, api: Api, chance: random.Random) -> None:
    """Sometimes the same lease as somebody else."""
    with fight.lock:
        if not fight.known:
            return
        lease_id = chance.choice(fight.known)
        if chance.random() < 0.8:
            fight.known.remove(lease_id)
    answer = api.ask("DELETE", f"/v1/leases/{lease_id}")
    fight.note("delete", answer)
    if answer.status_code == 204:
        with fight.lock:
            fight.gone.add(lease_id)


MIX: tuple[tuple[float, Callable[[Fight, Api, random.Random], None]], ...] = (
    (0.60, _create),
    (0.75, _change),
    (1.00, _delete),
)


def _client(fight: Fight, api: Api, seed: int, requests: int) -> None:
    chance = random.Random(seed)
    for _ in range(requests):
        dice = chance.random()
        next(act for limit, act in MIX if dice < limit)(fight, api, chance)


@pytest.fixture(scope="module")
def arena(stack: Stack, admin: Api) -> Iterator[None]:
    """Eight hosts of its own for the fight; nothing of it is left."""
    made = [admin.ask("POST", "/v1/os-hosts", {"name": name, "race": "yes"}) for name in RACE_HOSTS]
    assert [one.status_code for one in made] == [201] * len(RACE_HOSTS), [one.text for one in made]
    yield
    for lease in admin.all_of("/v1/leases", "leases"):
        if lease["name"].startswith(("race-", "same-")):
            admin.ask("DELETE", f"/v1/leases/{lease['id']}")
    for host in made:
        assert admin.ask("DELETE", f"/v1/os-hosts/{host.json()['host']['id']}").status_code == 204


def _fight(stack: Stack, admin: Api, member: Api, requests: int) -> Fight:
    seed = random.SystemRandom().randrange(10**6)
    fight = Fight(first=(time.time() // SLOT + 100 + SLOTS * 2 * (seed % 50)) * SLOT)
    with ThreadPoolExecutor(CLIENTS) as pool:
        runs = [pool.submit(_client, fight, member, seed + n, requests // CLIENTS) for n in range(CLIENTS)]
        began = time.monotonic()
        for run in runs:
            run.result()
    spent = time.monotonic() - began
    print(f"\nseed {seed}: {sum(fight.answers.values()) / spent:.0f} requests/s, {dict(fight.answers)}")
    assert not fight.wrong, (seed, Counter(fight.wrong).most_common(5))
    _check(stack, admin, fight, seed)
    return fight


def _check(stack: Stack, admin: Api, fight: Fight, seed: int) -> None:
    rows, shown = allocation_oracle.in_rows(stack.database_url), allocation_oracle.in_api(admin)
    assert sorted(rows) == sorted(shown), seed
    assert allocation_oracle.overlaps(rows) == [], seed
    standing = {lease["id"] for lease in admin.all_of("/v1/leases", "leases") if lease["name"].startswith("race-")}
    ours = set(fight.made) - fight.gone
    assert ours <= standing, (seed, "an acknowledged lease is missing")
    assert not fight.gone & standing, (seed, "a deleted lease is still there")
    assert {held.lease_id for held in rows if held.lease_id in fight.made} == ours, seed
    assert fight.answers["create", 201] > 20, "there was nothing to fight for"
    assert fight.answers["create", 409] > 20, "there was no fight"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_clients_fighting_for_hosts(stack: Stack, admin: Api, member: Api, arena: None) -> None:
    _fight(stack, admin, member, FEW)


@pytest.mark.campaign
@pytest.mark.timeout(1200)
def test_thousands_of_requests(stack: Stack, admin: Api, member: Api, arena: None) -> None:
    _fight(stack, admin, member, MANY)
    assert stack.run("journal", "check").returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_as_many_win_as_there_are_hosts(stack: Stack, admin: Api, member: Api, arena: None) -> None:
    """All ask for one host and the same time at the same moment: none is refused while a host is free."""
    start = (time.time() // SLOT + 90) * SLOT
    barrier = threading.Barrier(CLIENTS)

    def ask(turn: int) -> tuple[int, str]:
        barrier.wait(60)
        body = host_lease(f"same-{turn}", start + turn * SLOT, start + (turn + 1) * SLOT, 1, OURS)
        answer = member.ask("POST", "/v1/leases", body)
        return answer.status_code, answer.text if FULL not in answer.text else ""

    with ThreadPoolExecutor(CLIENTS) as pool:
        for turn in range(5):
            said = Counter(pool.map(ask, [turn] * CLIENTS))
            statuses = Counter(status for status, _ in said.elements())
            assert statuses == {201: len(RACE_HOSTS), 409: CLIENTS - len(RACE_HOSTS)}, said
    assert allocation_oracle.overlaps(allocation_oracle.in_rows(stack.database_url)) == []
