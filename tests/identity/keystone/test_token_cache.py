"""The cache of tokens is bounded in number and in time."""

from climate.identity.authentication.tokens import Grant
from climate.identity.keystone.token_cache import MOST_CACHED, TokenCache
from tests.identity.keystone.hands import Hands

GRANT = Grant("u", "user", ("password",), 0, 1000, audit_ids=("a",))


def cache(hands: Hands, seconds: float = 60) -> TokenCache:
    return TokenCache(seconds, clock=lambda: hands.seconds, now=lambda: hands.now)


def test_an_entry_lives_as_long_as_the_setting_says() -> None:
    hands = Hands()
    known = cache(hands)
    known.keep("t", GRANT, expired_too=False)
    hands.go_on(59.9)
    assert known.recall("t", expired_too=False) is GRANT
    hands.go_on(0.1)
    assert known.recall("t", expired_too=False) is None
    assert len(known) == 0


def test_an_expired_token_is_for_services_alone() -> None:
    hands = Hands(now=1000)
    known = cache(hands)
    known.keep("t", GRANT, expired_too=False)
    known.keep("t", GRANT, expired_too=True)
    assert known.recall("t", expired_too=False) is None
    assert known.recall("t", expired_too=True) is GRANT


def test_zero_seconds_cache_nothing() -> None:
    known = cache(Hands(), 0)
    known.keep("t", GRANT, expired_too=False)
    assert len(known) == 0


def test_the_token_that_was_used_longest_ago_makes_room() -> None:
    known = cache(Hands())
    for number in range(MOST_CACHED):
        known.keep(f"t{number}", GRANT, expired_too=False)
    known.recall("t0", expired_too=False)
    known.keep("new", GRANT, expired_too=False)
    assert len(known) == MOST_CACHED
    assert known.recall("t0", expired_too=False) is GRANT
    assert known.recall("t1", expired_too=False) is None
