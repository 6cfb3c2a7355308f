"""The rounds: one worker at a time, each round whatever becomes of the others, and at once when somebody asks."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from subprocess import PIPE, Popen

import pytest
from sqlalchemy import Engine, select

from climate import bootstrap
from climate.cloud import CloudError
from climate.context import Climate
from climate.domain.errors import Unavailable
from climate.settings import Settings
from climate.store.engine import connect
from climate.store.leases import event_claims
from climate.store.rounds import round_locks as locks
from climate.store.tables.limits_and_notices import round_locks
from tests.system.stack import await_so
from tests.workers.test_poller import PATIENCE, _listens
from workers import celery_app, rounds
from workers.poller import Poller

ROOT = Path(__file__).parents[2]

SLOW = 1200.0
"""Seconds between rounds: who rings within `PATIENCE` was asked to, however busy the machine is."""


@pytest.mark.parametrize(
    "trouble", [CloudError("away"), Unavailable(), ZeroDivisionError()], ids=lambda e: type(e).__name__
)
def test_the_trouble_of_one_does_not_keep_the_others_from_theirs(climate: Climate, trouble: Exception) -> None:
    made: list[str] = []

    def fails(_: Climate) -> None:
        made.append("fails")
        raise trouble

    def goes_on(_: Climate) -> None:
        made.append("goes on")

    rounds.run_each(climate, [fails, goes_on, fails, goes_on])
    assert made == ["fails", "goes on", "fails", "goes on"]


def test_all_rounds_run_in_a_quiet_deployment(climate: Climate, capsys: pytest.CaptureFixture[str]) -> None:
    rounds.run_each(climate)
    said = capsys.readouterr().out
    assert "failed" not in said
    assert "postponed" not in said


def test_one_worker_makes_them_at_a_time(engine: Engine) -> None:
    with rounds.alone(engine) as first:
        with rounds.alone(engine) as second:
            assert (bool(first), bool(second)) == (True, False)
        with rounds.alone(engine) as third:
            assert not third, "who did not get it does not give it back"
        with rounds.alone(engine, of="another host") as other:
            assert other
    with rounds.alone(engine) as next_one:
        assert next_one


def test_a_lock_that_is_renewed_outlives_its_life(engine: Engine) -> None:
    with rounds.alone(engine, life=3.0) as first:
        before = _expiry(engine)
        await_so(lambda: _expiry(engine) > before, 60, "a heartbeat")
        with rounds.alone(engine) as second:
            assert not second
        assert first.token is not None


def test_a_lock_that_was_given_back_cannot_be_renewed(engine: Engine) -> None:
    life = timedelta(minutes=1)
    with engine.begin() as conn:
        token = locks.take(conn, "pools", "first", life)
        assert token is not None
        locks.release(conn, "pools", token)
        assert not locks.renew(conn, "pools", token, life)
        later = locks.take(conn, "pools", "second", life)
        assert later is not None
        locks.release(conn, "pools", token)
        assert locks.renew(conn, "pools", later, life), "an old token gives nothing back"


def _expiry(engine: Engine) -> datetime:
    with engine.connect() as conn:
        return conn.execute(select(round_locks.c.expires_at)).scalar_one()  # type: ignore[no-any-return]


HOLDER = """
import sys
from climate.store.engine import connect
from workers import rounds

def made(climate):
    print("made a round", flush=True)

with rounds.alone(connect(sys.argv[1], pool_size=2), life=float(sys.argv[2])) as mine:
    print("holds" if mine else "does not hold", flush=True)
    sys.stdin.readline()
    rounds.run_each(None, [made, made], mine.__bool__)
print("done", flush=True)
"""


def test_rounds_of_a_stopped_process_are_taken_over_and_it_makes_no_more_when_it_wakes(
    engine: Engine, database_url: str
) -> None:
    command = [sys.executable, "-c", HOLDER, database_url, "5"]
    with Popen(command, stdin=PIPE, stdout=PIPE, text=True, cwd=ROOT) as holder:
        assert holder.stdin
        assert holder.stdout
        assert holder.stdout.readline().split()[-1] == "holds"
        holder.send_signal(signal.SIGSTOP)  # its kernel goes on answering for its connections
        try:
            with rounds.alone(engine) as early:
                assert not early
            with taken_over(engine) as heir:
                holder.send_signal(signal.SIGCONT)
                said, _ = holder.communicate("go on\n")
                assert "made a round" not in said
                assert said.split()[-1] == "done"
                assert heir
                with rounds.alone(engine) as third:
                    assert not third, "who has lost the lock does not give it back"
        finally:
            holder.send_signal(signal.SIGCONT)


@contextmanager
def taken_over(engine: Engine) -> Iterator[rounds.RoundLock]:
    """Wait for the lock, and hold it."""
    lock = rounds.RoundLock(engine, rounds.ROUNDS_LOCK, 60.0)

    def take() -> bool:
        lock.take()
        return bool(lock)

    await_so(take, 60, "the lock to expire")
    yield lock
    lock.release()


def test_without_a_database_there_are_none() -> None:
    with rounds.alone(connect("postgresql://nobody@127.0.0.1:1/none")) as mine:
        assert not mine


@dataclass
class Rings(Poller):
    """Notes when it rings for rounds, instead of ringing."""

    rung: list[threading.Event] = field(default_factory=lambda: [threading.Event(), threading.Event()])

    def _run_steps(self) -> None:
        pass

    def do_housekeeping(self) -> None:
        pass

    def wake_compute_services(self) -> None:
        pass

    def wake_rounds(self) -> None:
        next(one for one in self.rung if not one.is_set()).set()


@pytest.fixture
def poller(database_url: str) -> Iterator[Rings]:
    settings = Settings(
        database_url=database_url, redis_url="redis://127.0.0.1:1", poll_seconds=SLOW, pools_seconds=SLOW
    )
    made = Rings(bootstrap.build(settings, pool_size=2), celery_app.connect(settings.redis_url))
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.stopping.set()
    thread.join()
    made.deployment.climate.engine.dispose()


def test_a_transaction_can_ask_for_rounds_at_once(poller: Rings, engine: Engine) -> None:
    first, second = poller.rung
    assert first.wait(PATIENCE), "a poller that begins rings"
    await_so(lambda: _listens(engine), PATIENCE, "the poller's listening")
    await_so(poller.rounds_asked.is_set, PATIENCE, "rounds for what was missed before")
    poller.rounds_asked.clear()
    with engine.begin() as conn:
        event_claims.wake_rounds(conn)
    assert second.wait(PATIENCE)
    assert poller.rounds_asked.is_set(), "whether or not there is work that the poller can see"


def test_a_broker_that_is_away_does_not_end_a_poller(database_url: str) -> None:
    settings = Settings(database_url=database_url, redis_url="redis://127.0.0.1:1")
    made = Poller(bootstrap.build(settings, pool_size=1), celery_app.connect(settings.redis_url))
    made.wake_rounds()
    made.deployment.climate.engine.dispose()
