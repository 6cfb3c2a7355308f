"""Leases in words: every status and every fact has some, and requirements read as people write them."""

import pytest

from api.web.lease_words import STATES, happening_title, requirement
from climate.domain.status import LeaseStatus


def test_every_status_has_a_sentence() -> None:
    assert set(STATES) == set(LeaseStatus)


def test_facts_without_words_of_their_own_are_named_by_their_class() -> None:
    assert happening_title("EventFinished") == "Event done"
    assert happening_title("SomethingNewHappened") == "Something new happened"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[">", "$gpu_count", "1"]', "gpu_count > 1"),
        ('["and", [">=", "$vcpus", "4"], ["==", "$rack", "A"]]', "vcpus >= 4 and rack == A"),
        ('["or", ["and", ["=", "$a", "1"], ["=", "$b", "2"]], ["=", "$c", 3]]', "(a = 1 and b = 2) or c = 3"),
        ('["not", ["=", "$a", "1"]]', "not (a = 1)"),
        ("gpu", "gpu"),
        ("{}", "{}"),
    ],
)
def test_requirements_read_as_people_write_them(text: str, words: str) -> None:
    assert requirement(text) == words
