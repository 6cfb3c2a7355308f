"""Threads of a cells process: each neighbour has one of its own."""

import threading

from tests.workers.cell_stacks import PATIENCE
from workers.cell_pipeline import Senders


def test_neighbour_that_hangs_delays_no_other() -> None:
    senders, hangs, sent = Senders(), threading.Event(), threading.Event()
    senders.submit("left", lambda: hangs.wait(PATIENCE))
    senders.submit("right", sent.set)
    assert sent.wait(PATIENCE)
    hangs.set()
    senders.close()


def test_messages_to_a_neighbour_are_sent_in_their_order_by_one_thread() -> None:
    senders, sent, threads = Senders(), list[int](), set[int]()

    def send(number: int) -> None:
        sent.append(number)
        threads.add(threading.get_ident())

    for number in range(100):
        senders.submit("left", lambda number=number: send(number))  # type: ignore[misc]
    senders.close()
    assert (sent, len(threads)) == (list(range(100)), 1)
