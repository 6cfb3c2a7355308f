"""A worker that has gone deaf is told from one that is busy, or has nothing to do."""

from workers.watch import LOOKS, Watch


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
