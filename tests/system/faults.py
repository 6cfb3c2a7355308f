"""What may happen to a stack at any moment: kill -9, pauses, and a queue that forgets, repeats and lies."""

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

import psutil
import psycopg
import redis
from kombu.exceptions import OperationalError

from climate.bootstrap import plain_url
from tests.system.stack import Stack
from workers import celery_app

KILLED = (
    *("worker", "worker child", "poller", "web", "web child"),
    *("valkey", "postgres", "postgres child", "reaper"),
)
SETTLED = "event settled"
LONGEST_LULL = 10.0
"""Maximum wait between two faults, in seconds, for an event to be settled."""

REPORTED = 50
"""Kills between two lines of progress."""
GARBAGE = (b"\x80\x04.", b"{}", b"[]", b"null", b'{"body": 1, "headers": 2}', b"{" * 4000, b"x" * 1_000_000)


@dataclass
class Storm:
    """A random run of faults; the same seed chooses the same faults at the same distances."""

    stack: Stack
    seed: int
    resource_types: tuple[str, ...]
    lull: float = LONGEST_LULL
    """Maximum wait after most faults, in seconds; after each kind of process was killed once it is `LONGEST_LULL`."""
    told: list[str] = field(default_factory=list)
    count: Counter[str] = field(default_factory=Counter)
    _next: list[str] = field(default_factory=list)
    _timers: list[threading.Timer] = field(default_factory=list)

    def blow(self, kills: int, calm: Callable[[float], bool]) -> None:
        """Go on until so many processes were killed; `calm(seconds)` waits, and is true when all is over.

        Mostly some work gets done between two faults, also on a slow machine:
        where nothing lives nothing can be lost.
        """
        chance = random.Random(self.seed)
        others = (self._pause_child, self._flush, self._repeat, self._forge, self._litter)
        while self.kills < kills and not calm(chance.uniform(0.1, 1.2)):
            said = len(self.stack.said)
            act = chance.choice(others) if chance.random() < 0.25 else self._kill
            with suppress(psutil.Error, psycopg.Error, redis.RedisError, OSError, OperationalError):
                act(chance)
            whole = not self._next
            if whole or chance.random() < 0.6:
                self.stack.hears(SETTLED, LONGEST_LULL if whole else self.lull, said)
        for timer in self._timers:
            timer.join()

    @property
    def kills(self) -> int:
        return sum(count for what, count in self.count.items() if what.startswith("kill"))

    def _kill(self, chance: random.Random) -> None:
        """Each kind in its turn, in an order that is new each time; one that is not there now keeps its turn."""
        if not self._next:
            self._next += chance.sample(KILLED, len(KILLED))
        role = next((role for role in self._next if self.stack.find(role)), None)
        if role is not None:
            victim = chance.choice(self.stack.find(role))
            victim.kill()
            self._next.remove(role)
            self._note(f"kill {role}", victim.pid)
            if self.kills % REPORTED == 0:
                print(f"{time.strftime('%H:%M:%S', time.gmtime())} {self.kills} kills {dict(self.count)}", flush=True)

    def _pause_child(self, chance: random.Random) -> None:
        """A worker that is silent for longer than its claim lives, and then goes on as if nothing had been."""
        found = self.stack.find("worker child")
        if not found:
            return
        victim = chance.choice(found)
        victim.suspend()
        timer = threading.Timer(chance.uniform(1, 6), _resume, [victim])
        timer.start()
        self._timers.append(timer)
        self._note("pause worker child", victim.pid)

    def _flush(self, chance: random.Random) -> None:
        with self._valkey() as valkey:
            valkey.flushall()
        self._note("flush")

    def _repeat(self, chance: random.Random) -> None:
        """The messages of all claims at once, three times each."""
        with psycopg.connect(plain_url(self.stack.database_url), connect_timeout=2) as conn:
            claims = conn.execute("SELECT event_id, token, queue FROM claims").fetchall()
        app = celery_app.connect(self.stack.redis_url)
        for event_id, token, queue in claims * 3:
            celery_app.send(app, celery_app.RUN_EVENT, [str(event_id), token], queue)
        if claims:
            self._note("repeat", len(claims))

    def _forge(self, chance: random.Random) -> None:
        """Messages that nobody sent: a claimed event with a wrong token, any event with token 0, events of nobody."""
        with psycopg.connect(plain_url(self.stack.database_url), connect_timeout=2) as conn:
            claimed = conn.execute("SELECT event_id, token FROM claims LIMIT 5").fetchall()
            known = conn.execute("SELECT id, token FROM events ORDER BY random() LIMIT 5").fetchall()
        wrong = [(one, token + 10**6) for one, token in claimed] + [(one, token - 1) for one, token in claimed]
        lies = [*wrong, *known, *((one, 0) for one, _ in known), (uuid4(), 1), ("no-uuid", "no-token")]
        app = celery_app.connect(self.stack.redis_url)
        for event_id, token in lies:
            queue = f"events.{chance.choice(self.resource_types)}"
            celery_app.send(app, celery_app.RUN_EVENT, [str(event_id), token], queue)
        self._note("forge", len(lies))

    def _litter(self, chance: random.Random) -> None:
        queue = f"climate:events.{chance.choice(self.resource_types)}"
        with self._valkey() as valkey:
            valkey.lpush(queue, chance.choice(GARBAGE))
        self._note("litter")

    def _valkey(self) -> redis.Redis:
        return redis.Redis.from_url(self.stack.redis_url, socket_timeout=2, socket_connect_timeout=2)

    def _note(self, what: str, which: int | str = "") -> None:
        self.count[what] += 1
        self.told.append(f"{time.strftime('%H:%M:%S', time.gmtime())} {what} {which}")


def _resume(victim: psutil.Process) -> None:
    with suppress(psutil.Error):
        victim.resume()
