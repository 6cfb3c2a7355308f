"""The rounds: one worker at a time, each round whatever becomes of the others, and at once when somebody asks."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Engine

from climate import bootstrap
from climate.cloud import CloudError
from climate.context import Climate
from climate.domain.errors import Unavailable
from climate.settings import Settings
from climate.store import claims
from tests.system.stack import await_so
from tests.workers.test_poller import _listens
from workers import doorbell, rounds
from workers.poller import Poller

SLOW = 30.0
"""Seconds between rounds: who rings sooner was asked to."""


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

    rounds.make(climate, [fails, goes_on, fails, goes_on])
    assert made == ["fails", "goes on", "fails", "goes on"]


def test_all_rounds_can_be_made_of_a_quiet_deployment(climate: Climate, capsys: pytest.CaptureFixture[str]) -> None:
    rounds.make(climate)
    said = capsys.readouterr().out
    assert "came to nothing" not in said
    assert "put off" not in said


def test_one_worker_makes_them_at_a_time(database_url: str) -> None:
    settings = Settings(database_url=database_url)
    with rounds.alone(settings) as first:
        with rounds.alone(settings) as second:
            assert (first, second) == (True, False)
        with rounds.alone(settings) as third:
            assert not third, "who did not get it does not give it back"
    with rounds.alone(settings) as next_one:
        assert next_one


def test_without_a_database_there_are_none() -> None:
    with rounds.alone(Settings(database_url="postgresql://nobody@127.0.0.1:1/none")) as mine:
        assert not mine


@dataclass
class Rings(Poller):
    """Notes when it rings for rounds, instead of ringing."""

    rung: list[threading.Event] = field(default_factory=lambda: [threading.Event(), threading.Event()])

    def _look(self) -> None:
        pass

    def do_chores(self) -> None:
        pass

    def ring_for_services(self) -> None:
        pass

    def ring_for_rounds(self) -> None:
        next(one for one in self.rung if not one.is_set()).set()


@pytest.fixture
def poller(database_url: str) -> Iterator[Rings]:
    settings = Settings(
        database_url=database_url, redis_url="redis://127.0.0.1:1", poll_seconds=SLOW, pools_seconds=SLOW
    )
    made = Rings(bootstrap.build(settings, pool_size=2), doorbell.connect(settings.redis_url))
    thread = threading.Thread(target=made.run)
    thread.start()
    yield made
    made.stopping.set()
    thread.join()
    made.deployment.climate.engine.dispose()


def test_a_transaction_can_ask_for_rounds_at_once(poller: Rings, engine: Engine) -> None:
    first, second = poller.rung
    assert first.wait(SLOW / 2), "a poller that begins rings"
    await_so(lambda: _listens(engine), SLOW / 2, "the poller's listening")
    with engine.begin() as conn:
        claims.wake_rounds(conn)
    assert second.wait(SLOW / 2)


def test_a_broker_that_is_away_does_not_end_a_poller(database_url: str) -> None:
    settings = Settings(database_url=database_url, redis_url="redis://127.0.0.1:1")
    made = Poller(bootstrap.build(settings, pool_size=1), doorbell.connect(settings.redis_url))
    made.ring_for_rounds()
    made.deployment.climate.engine.dispose()
