"""Statements of the pages: as many for many rows as for few."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import Engine, event

from climate.context import Climate
from climate.service.leases import leases
from climate.service.leases.leases import Order
from tests.api.reservation.api_clients import HOST
from tests.api.web.page_clients import Browser
from tests.conftest import MEMBER, Clock


@contextmanager
def counted(engine: Engine) -> Iterator[list[str]]:
    found: list[str] = []

    def note(conn: object, cursor: object, statement: str, *rest: object) -> None:
        found.append(statement)

    event.listen(engine, "before_cursor_execute", note)
    yield found
    event.remove(engine, "before_cursor_execute", note)


@pytest.mark.parametrize("path", ["/ui/", "/ui/leases", "/ui/usage", "/ui/notices"])
def test_more_leases_need_no_more_statements(climate: Climate, clock: Clock, member: Browser, path: str) -> None:
    def add(number: int) -> None:
        for place in range(number):
            start = clock.time + timedelta(days=1 + place)
            leases.create(climate, MEMBER, Order("l", start, start + timedelta(hours=1), reservations=[HOST]))

    add(1)
    member.get(path)
    with counted(climate.engine) as few:
        member.get(path)
    clock.forward(days=30)
    add(8)
    with counted(climate.engine) as many:
        member.get(path)
    assert len(many) == len(few)
    assert len(few) <= 16
