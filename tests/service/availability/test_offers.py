"""Offers as sealed texts."""

from datetime import timedelta

import pytest

from climate.context import Climate
from climate.domain.errors import Conflict, NotFound
from climate.domain.period import Period
from climate.service.availability import offers
from tests.conftest import MEMBER, STRANGER, Clock
from tests.service.lease_actions import hosts_wanted

HOUR = timedelta(hours=1)


def test_an_offer_is_read_by_its_project_until_it_expires(climate: Climate, clock: Clock) -> None:
    period = Period(clock.time + HOUR, clock.time + 2 * HOUR)
    sealed = offers.seal(climate, MEMBER, period, [hosts_wanted(2)], clock.time)
    terms = offers.opened(climate, MEMBER, sealed, clock.time)
    assert (terms.start, terms.end, list(terms.reservations)) == (period.start, period.end, [hosts_wanted(2)])
    with pytest.raises(NotFound):
        offers.opened(climate, STRANGER, sealed, clock.time)
    with pytest.raises(Conflict, match="expired"):
        offers.opened(climate, MEMBER, sealed, clock.time + offers.LIFETIME)


def test_other_sealed_texts_are_no_offers(climate: Climate, clock: Clock) -> None:
    for text in (climate.vault.seal({"project": "project"}), "x", "é"):
        with pytest.raises(NotFound):
            offers.opened(climate, MEMBER, text, clock.time)


def test_an_offer_of_now_expires_soon_after_its_start(clock: Clock) -> None:
    assert offers.expiry(clock.time, clock.time) == clock.time + offers.LATE
    assert offers.expiry(clock.time + HOUR, clock.time) == clock.time + offers.LIFETIME


def test_the_expiry_of_an_offer_has_whole_seconds(clock: Clock) -> None:
    now = clock.time.replace(microsecond=700_000)
    assert offers.expiry(now + HOUR, now) == clock.time + offers.LIFETIME
