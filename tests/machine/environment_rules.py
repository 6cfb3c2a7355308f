"""What happens by itself: time, pollers and workers, rounds, health, power, and a cloud that has its days."""

from collections.abc import Callable
from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import rule

from climate.cloud import CloudError
from climate.power.simulated import Trouble
from climate.service.events import event_dispatch
from tests.machine import host_invariants
from tests.machine.deployment import ALL_ROUNDS, Site
from tests.machine.user_rules import ONE_HOST

VERBS = st.sampled_from(
    [
        "lend",
        "take_back",
        "close",
        "delete_server",
        "move_server",
        "evacuate_server",
        "servers_in",
        "servers_on",
        "place",
        "grant",
        "revoke",
    ]
)


class Surroundings:
    """Rules of a state machine over `site`."""

    site: Site

    # Time, pollers, workers.

    @rule(seconds=st.sampled_from([1, 61, 300, 900, 3600]))
    def time_passes(self, seconds: int) -> None:
        self.site.clock.forward(seconds=seconds)

    @rule(minutes=st.sampled_from([2, 2, 5, 15]))
    def all_goes_its_way(self, minutes: int) -> None:
        """Time passes, with rounds and workers at every minute of it."""
        for _ in range(min(minutes, 5)):
            self.site.clock.forward(minutes=minutes / min(minutes, 5))
            self._catch_up()

    @rule()
    def to_the_next_event(self) -> None:
        self.site.clock.time += event_dispatch.next_due(self.site.climate) or timedelta(0)
        self._catch_up()

    def _catch_up(self) -> None:
        event_dispatch.rescue(self.site.climate, "poller")
        self.site.run_all()
        self.site.rounds()
        self.site.run_all()
        if not self._has_troubles():
            self.site.rounds()
            host_invariants.after_the_rounds(self.site)

    def _has_troubles(self) -> bool:
        cloud = self.site.cloud
        return bool(cloud.broken or cloud.failures or cloud.unheard or cloud.looks_until_gone)

    @rule()
    def workers_work(self) -> None:
        self.site.queue += self.site.send()
        while self.site.queue:
            self.site.run(self.site.queue.pop(0))

    @rule(number=st.integers(0, 3), kind=st.sampled_from(["dies", "stands still", "dies before the record"]))
    def a_worker_fails(self, number: int, kind: str) -> None:
        """At the so-many-th verb that it asks of the cloud."""
        if kind == "dies":
            self._strike(number, self.site.die)
        elif kind == "stands still":
            self._strike(number, lambda: self.site.pause("other worker"))
        else:
            with self.site.dying_before_the_record():
                self._strike(0, lambda: None)

    @rule(data=st.data())
    def an_old_message_comes_again(self, data: st.DataObject) -> None:
        event_dispatch.rescue(self.site.climate, "other poller")
        if self.site.old:
            self.site.run(data.draw(st.sampled_from(self.site.old)), "late worker")

    def _strike(self, number: int, strike: Callable[[], None]) -> None:
        self.site.queue = self.site.queue or self.site.send()
        if self.site.queue:
            self.site.strike_at_verb(number, strike)
            self.site.run(self.site.queue.pop(0))

    # Rounds.

    @rule(which=st.none() | st.integers(0, len(ALL_ROUNDS) - 1))
    def rounds(self, which: int | None) -> None:
        self.site.rounds(which)

    @rule(which=st.integers(0, len(ALL_ROUNDS) - 1), number=st.integers(0, 2))
    def the_rounds_break_off(self, which: int, number: int) -> None:
        """Whoever makes them dies when the cloud is asked."""
        self.site.strike_at_verb(number, self.site.die)
        self.site.rounds(which)

    # Hosts.

    @rule(host=ONE_HOST, kind=st.sampled_from(["ill", "dead", "off"]) | st.sampled_from(Trouble))
    def a_host_fails(self, host: str, kind: str) -> None:
        """It breaks, with or without its servers; somebody switches it off; its power supply plays up."""
        site = self.site
        if kind == "ill":
            site.cloud.unwell[host] = "its service is down"
        elif kind == "dead":
            site.cloud.die(host)
            site.ordinary &= {server.id for server in site.cloud.servers()}
        elif kind == "off":
            site.switch_off(host)
        else:
            site.supply.inject(host, Trouble(kind))
            site.tampered.add(host)

    @rule(host=ONE_HOST)
    def an_ordinary_server_is_migrated(self, host: str) -> None:
        """Its owner has it moved by hand to a host that ordinary boots use."""
        server = next((one for one in self.site.cloud.servers() if one.id in self.site.ordinary), None)
        if server is not None and not server.busy and self.site.takes(host):
            self.site.cloud.migrate(server.id, host)

    @rule()
    def all_hosts_recover(self) -> None:
        self.site.cloud.unwell.clear()

    # The cloud.

    @rule(verb=VERBS, kind=st.sampled_from(["broken", "flaky", "unheard", "slow"]))
    def the_cloud_has_troubles(self, verb: str, kind: str) -> None:
        cloud = self.site.cloud
        if kind == "broken":
            cloud.broken = True
        elif kind == "flaky":
            cloud.failures[verb] = CloudError("flaky")
        elif kind == "unheard":
            cloud.unheard[verb] = 1
        else:
            cloud.looks_until_gone = cloud.looks_until_moved = 2

    @rule()
    def the_cloud_comes_back(self) -> None:
        cloud = self.site.cloud
        cloud.broken, cloud.looks_until_gone, cloud.looks_until_moved = False, 0, 0
        self.site.cloud.failures.clear()
        self.site.cloud.unheard.clear()
