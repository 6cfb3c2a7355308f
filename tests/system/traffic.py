"""Clients in a storm: they ask for leases, change and delete them, and repeat what got no answer until it has one."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from tests.system.api_client import Api, host_lease, key, moment

OURS = '["=", "$chaos", "yes"]'
PATIENCE = 90.0
"""Seconds within which every request has to be answered for good, whatever dies meanwhile."""
BUSY_PATIENCE = 20.0
"""Seconds after which a client takes "in progress, try again" for an answer."""
PASSING = (502, 503)
BUSY = ("still running", "in progress")


@dataclass
class Wish:
    """A lease that somebody asked for, with what the answers said of it."""

    name: str
    kind: str
    key: str = field(default_factory=key)
    lease_id: str = ""
    ends: set[str] = field(default_factory=set)
    """Every end that it may have, as `YYYY-MM-DDTHH:MM:SSZ`: one, or two where a change got no clear answer."""
    deleted: bool = False
    """Its deletion was asked for; it need not have been granted."""


@dataclass
class Traffic:
    """What all clients share."""

    api: Api
    folder: str
    """Where the ledger's pages are."""
    flavor: str
    image: str
    seed: int
    pause: tuple[float, float] = (0.1, 0.9)
    """Minimum and maximum wait of a client between two requests, in seconds."""
    patience: float = PATIENCE
    wishes: list[Wish] = field(default_factory=list)
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)
    last_end: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, number: int) -> None:
        """One client, until it is told to stop."""
        chance = random.Random(self.seed * 1000 + number)
        own: list[Wish] = []
        turn = 0
        while not self.stopping.wait(chance.uniform(*self.pause)):
            turn += 1
            dice = chance.random()
            if dice < 0.7 or not own:
                self._create(chance, own, f"storm-{self.seed}-{number}-{turn}")
            elif dice < 0.9:
                self._change(chance, chance.choice(own[-6:]))
            else:
                self._delete(chance.choice(own[-6:]))

    def _create(self, chance: random.Random, own: list[Wish], name: str) -> None:
        kind = chance.choices(("host", "offer", "ledger", "server"), (7, 3, 8, 2))[0]
        start = int(time.time()) + chance.randint(2, 10)
        end = start + chance.randint(10, 30)
        wish = Wish(name, kind, ends={moment(end)})
        makers: dict[str, Callable[..., httpx.Response | None]] = {
            "host": self._host,
            "offer": self._offer,
            "ledger": self._ledger,
            "server": self._server,
        }
        answer = makers[kind](wish, chance, start, end)
        if answer is None or answer.status_code not in (201, 202):
            return
        with self._lock:
            wish.lease_id = answer.json()["lease"]["id"] if kind != "server" else ""
            self.wishes.append(wish)
            self.last_end = max(self.last_end, float(end))
        if kind != "server":
            own.append(wish)

    def _host(self, wish: Wish, chance: random.Random, start: int, end: int) -> httpx.Response | None:
        body = host_lease(wish.name, start, end, chance.choice((1, 1, 2)), OURS)
        return self._insist("create", "POST", "/v1/leases", body, **{"Idempotency-Key": wish.key})

    def _offer(self, wish: Wish, chance: random.Random, start: int, end: int) -> httpx.Response | None:
        """A lease of a held offer. It cannot fail for capacity, so it is refused only once its hold is over."""
        order = host_lease(wish.name, start, end, chance.choice((1, 1, 2)), OURS)
        at = {"reservations": order["reservations"], "duration": end - start, "earliest": moment(start), "mode": "at"}
        found = self._insist("find", "POST", "/v1/availability", at)
        if found is None or found.status_code != 200 or not found.json()["offers"]:
            return None
        wanted = {"offer": found.json()["offers"][0]["id"], "name": wish.name}
        held = self._insist("hold", "POST", "/v1/holds", wanted)
        if held is None or held.status_code != 201:
            return None
        body = {"name": wish.name, "hold": held.json()["hold"]["id"]}
        answer = self._insist("take", "POST", "/v1/leases", body, **{"Idempotency-Key": wish.key})
        if answer is not None and answer.status_code == 409 and "expired" not in answer.text:
            with self._lock:
                self.wrong.append(f"take: {answer.text[:300]}")
        return answer

    def _ledger(self, wish: Wish, chance: random.Random, start: int, end: int) -> httpx.Response | None:
        trouble = chance.choices(("", "error", "wait"), (6, 1, 1))[0]
        page = {"resource_type": "test:ledger", "folder": self.folder, "work": chance.choice((0, 0, 0.05, 0.3))}
        body = {
            "name": wish.name,
            "start_date": moment(start),
            "end_date": moment(end),
            "before_end_date": moment((start + end) // 2),
            "reservations": [{**page, "trouble": trouble}],
            "events": [],
        }
        return self._insist("create", "POST", "/v1/leases", body, **{"Idempotency-Key": wish.key})

    def _server(self, wish: Wish, chance: random.Random, start: int, end: int) -> httpx.Response | None:
        """Asked for once only: what makes servers knows no keys."""
        params = {"name": wish.name, "start": moment(start), "end": moment(end)}
        server = {"name": wish.name, "flavorRef": self.flavor, "imageRef": self.image, "networks": "none"}
        hints = {"reserved": "True", "lease_params": params}
        body = {"server": server, "OS-SCH-HNT:scheduler_hints": hints}
        try:
            answer = self.api.ask("POST", "/compute/v2.1/servers", body, **{"OpenStack-API-Version": "compute 2.79"})
        except httpx.HTTPError:
            return None
        self._note("boot", answer)
        return answer

    def _change(self, chance: random.Random, wish: Wish) -> None:
        """A new end, later or sooner; without a clear answer both count."""
        end = int(time.time()) + chance.randint(4, 25)
        with self._lock:
            wish.ends.add(moment(end))
            self.last_end = max(self.last_end, float(end))
        answer = self._insist("change", "PUT", f"/v1/leases/{wish.lease_id}", {"end_date": moment(end)})
        if answer is not None and answer.status_code == 200:
            # An end that has passed meanwhile, but in this very minute, is now.
            wish.ends = {f"{answer.json()['lease']['end_date'][:19]}Z"}

    def _delete(self, wish: Wish) -> None:
        wish.deleted = True
        self._insist("delete", "DELETE", f"/v1/leases/{wish.lease_id}")

    def _insist(self, verb: str, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response | None:
        """Ask again and again until there is an answer that a person would believe."""
        began, pause = time.monotonic(), 0.1
        while (spent := time.monotonic() - began) < self.patience:
            try:
                answer = self.api.ask(method, path, body, **headers)
            except httpx.HTTPError:
                answer = None
            if answer is not None:
                self._note(verb, answer)
                if not _passes(answer) or (answer.status_code == 409 and spent > BUSY_PATIENCE):
                    return answer
            threading.Event().wait(pause)
            pause = min(1.0, pause * 1.5)
        with self._lock:
            self.wrong.append(f"{verb}: no answer for good within {self.patience:g} s")
        return None

    def _note(self, verb: str, answer: httpx.Response) -> None:
        status = answer.status_code
        with self._lock:
            self.answers[verb, status] += 1
            if status not in (200, 201, 202, 204, 400, 404, 409, *PASSING):
                self.wrong.append(f"{verb}: {status} {answer.text[:300]}")


def _passes(answer: httpx.Response) -> bool:
    """Whether the answer is only for now."""
    busy = answer.status_code == 409 and any(words in answer.text for words in BUSY)
    return busy or answer.status_code in PASSING
