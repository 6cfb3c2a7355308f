"""What admins do with hosts: move them, work on them, close them, declare them failed or well, give leases others."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import rule

from climate.domain.errors import ClimateError
from climate.domain.hosts.pools import Pool
from climate.domain.lease import Lease
from climate.service.events import events
from climate.service.host_operations import failures, maintenance, pool_moves, pools
from climate.service.hosts import reservable as opening
from climate.service.leases import host_replacement
from climate.service.power import power
from climate.service.power.power import ManualRequest
from tests.conftest import ADMIN
from tests.machine.deployment import Site
from tests.machine.user_rules import known
from tests.service.lease_actions import listed_events

NUMBERS = st.integers(1, 4)
_POOLS = (Pool.MULTI_TENANT, Pool.RESERVATION, Pool.RESERVATION, Pool.DRAINING, Pool.MAINTENANCE, Pool.FAILED)


class Admins:
    """Rules of a state machine over `site`."""

    site: Site

    @rule(
        hosts=st.lists(NUMBERS, min_size=1, max_size=2, unique=True),
        to=st.sampled_from([*_POOLS]),
        force=st.booleans(),
    )
    def move_hosts(self, hosts: list[int], to: Pool, force: bool) -> None:
        order = pool_moves.RequestedMove([str(number) for number in hosts], to, force=force)
        self._perhaps(lambda: pool_moves.move(self.site.climate, ADMIN, order))

    @rule(
        host=NUMBERS,
        start=st.sampled_from([0, 0, 10, 40]),
        length=st.none() | st.sampled_from([5, 30]),
        force=st.booleans(),
        moved=st.booleans(),
    )
    def work_on(self, host: int, start: int, length: int | None, force: bool, moved: bool) -> None:
        begin = self.site.clock.time + timedelta(minutes=start)
        end = None if length is None else begin + timedelta(minutes=length)
        order = maintenance.WindowRequest(str(host), begin, end, "new fans", force, move_servers=moved)
        self._perhaps(lambda: maintenance.plan(self.site.climate, ADMIN, order))

    @rule(moved=st.sampled_from([True, True, False, None]))
    def servers_may_be_moved(self, moved: bool | None) -> None:
        """Away from hosts that drain, and not only waited for."""
        terms = {"move_servers": moved}
        self._perhaps(lambda: pools.change(self.site.climate, ADMIN, Pool.RESERVATION, terms))

    @rule(which=st.integers(0, 3))
    def work_is_done(self, which: int) -> None:
        for window in self.site.open_windows()[which : which + 1]:
            self._perhaps(lambda window=window: maintenance.end(self.site.climate, ADMIN, window.id))  # type: ignore[misc]

    @rule(host=NUMBERS, reservable=st.sampled_from([True, True, False]))
    def open_or_close(self, host: int, reservable: bool) -> None:
        self._perhaps(lambda: opening.open_to_promises(self.site.climate, ADMIN, str(host), reservable))

    @rule(host=NUMBERS)
    def declare_failed(self, host: int) -> None:
        self._perhaps(lambda: failures.fail(self.site.climate, ADMIN, str(host), "smoke"))

    @rule(host=NUMBERS)
    def declare_well(self, host: int) -> None:
        self._perhaps(lambda: failures.heal(self.site.climate, ADMIN, str(host)))

    @rule(lease=known, to=st.none() | NUMBERS, force=st.booleans())
    def give_another_host(self, lease: Lease, to: int | None, force: bool) -> None:
        for number in self.site.get(lease).reservations[0].hosts[:1]:
            order = host_replacement.ReplacementRequest(
                str(number), lease.id, to=None if to is None else str(to), force=force
            )
            self._perhaps(lambda order=order: host_replacement.reallocate(self.site.climate, ADMIN, order))  # type: ignore[misc]

    @rule(host=NUMBERS, on=st.booleans())
    def switch_by_hand(self, host: int, on: bool) -> None:
        self._perhaps(lambda: power.switch(self.site.climate, ADMIN, str(host), ManualRequest(on)))

    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        failed = [event.id for _, event in listed_events(self.site.climate, "ERROR", 100)]
        if failed:
            self._perhaps(lambda: events.requeue(self.site.climate, ADMIN, data.draw(st.sampled_from(failed))))

    def _perhaps(self, act: Callable[[], object]) -> None:
        with suppress(ClimateError):
            act()
