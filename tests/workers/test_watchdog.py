"""A worker that has gone deaf is told from one that is busy, or has nothing to do."""

from sqlalchemy import Engine, text

from climate.settings import Settings
from workers.watchdog import LIFE_SECONDS, LOOKS, Heartbeat, Watch, recorder


def _looks(*seen: tuple[int, int]) -> list[bool]:
    """What a watch says at each look, where so many messages wait and so many are in hand."""
    waiting, taken = iter([one for one, hand in seen if not hand]), iter([hand for _, hand in seen])
    watch = Watch(lambda: next(waiting), lambda: next(taken))
    return [watch.is_deaf() for _ in seen]


def test_messages_that_nobody_takes_mean_deafness() -> None:
    assert _looks(*[(3, 0)] * LOOKS) == [*[False] * (LOOKS - 1), True]


def test_a_busy_worker_may_leave_messages_lying() -> None:
    assert not any(_looks(*[(3, 1)] * (2 * LOOKS)))


def test_nothing_to_do_is_not_deafness() -> None:
    assert not any(_looks(*[(0, 0)] * (2 * LOOKS)))


def test_one_good_look_begins_the_count_anew() -> None:
    assert not any(_looks(*[(3, 0)] * (LOOKS - 1), (0, 0), *[(3, 0)] * (LOOKS - 1)))


def test_a_worker_shows_life_now_and_then_while_the_broker_answers() -> None:
    answers, moments, shows = iter([False, True, True]), iter([0.0, 1.0, 1.0, 2.0, LIFE_SECONDS + 2.0, 0.0]), []
    life = Heartbeat(lambda: shows.append("recorder"), lambda: next(answers), lambda: next(moments))
    seen = []
    for _ in range(4):
        life.beat()
        seen.append(len(shows))
    assert seen == [0, 1, 1, 2]


def test_each_queue_of_a_worker_has_a_sign_of_life(database_url: str, engine: Engine) -> None:
    show = recorder(Settings(database_url=database_url), ["events", "compute.c"])
    show()
    show()
    with engine.connect() as conn:
        found = conn.execute(text("SELECT role FROM beats ORDER BY role")).scalars().all()
    assert found == ["queue:compute.c", "queue:events"]


def test_a_database_that_is_away_ends_no_watch() -> None:
    life = Heartbeat(
        recorder(Settings(database_url="postgresql:///nowhere?host=/nonexistent"), ["events"]), lambda: True
    )
    life.beat()
