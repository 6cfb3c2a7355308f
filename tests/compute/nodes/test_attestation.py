"""Flavors that ask for trust go to services that an attestation service over HTTP says have it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from climate.bootstrap import build
from climate.compute.errors import BadRequest, NoValidHost
from climate.compute.models.flavor import Flavor
from climate.compute.models.server import ERROR
from climate.compute.nodes import attestation
from climate.compute.nodes.attestation import AttestationService, Trust
from climate.compute.servers import resize, unshelve
from climate.compute.servers.actions import shelve
from climate.compute.zones.builds.selection import room
from climate.settings import SettingError, Settings
from tests.compute.cloud_factory import SERVICE, Place, request
from tests.compute.test_schedulers import under
from tests.webhook_receiver import Exchange, Receiver, receiving

FILTERS = "RamFilter,ComputeFilter,TrustedFilter"
OTHER = "compute-2"


def asks(level: str, ram_mb: int = 512) -> Flavor:
    return Flavor(f"{level}-{ram_mb}", level, 1, ram_mb, 1, extra_specs={"trust:trusted_host": level})


@pytest.fixture
def service() -> Iterator[Receiver]:
    """An attestation service that trusts the second host alone."""
    with receiving() as found:
        found.answer = telling({OTHER: "trusted", SERVICE: "untrusted"})
        yield found


def telling(levels: dict[str, Any]) -> Any:
    def answer(exchange: Exchange) -> None:
        asked = exchange.got.body["hosts"]
        hosts = [{"host_name": host, "trust_lvl": levels[host], "vtime": "now"} for host in asked if host in levels]
        exchange.say(200, json.dumps({"hosts": hosts}).encode())

    return answer


@pytest.fixture
def cloud(here: Place, service: Receiver) -> Place:
    """The nodes n3 and n4 are another service's."""
    with here.compute.engine.begin() as conn:
        copied = "SELECT 'compute-2', beat_at FROM compute_services WHERE host = 'compute-1'"
        conn.execute(text(f"INSERT INTO compute_services (host, beat_at) {copied}"))
        conn.execute(text("UPDATE compute_nodes SET service_host = 'compute-2' WHERE name IN ('n3', 'n4')"))
    found = under(here, "filter", scheduler_filters=FILTERS, attestation_url=service.url)
    return replace(found, compute=replace(found.compute, trust=Trust(AttestationService(service.url, "word"))))


def test_servers_go_to_hosts_of_the_level_that_their_flavor_asks_for(cloud: Place, service: Receiver) -> None:
    assert {cloud.boot(asks("trusted"), networks=())[0].node for _ in range(2)} == {"n3", "n4"}
    assert {cloud.boot(asks("untrusted"), networks=())[0].node for _ in range(2)} == {"n1", "n2"}
    refused = cloud.boot(asks("unknown"), networks=())[0]
    assert (refused.status, "TrustedFilter" in str(refused.fault)) == (ERROR, True)
    (got,) = service.got
    assert (got.method, got.path, got.body) == ("POST", "/PollHosts", {"hosts": [SERVICE, OTHER]})
    assert got.headers["x-auth-blob"] == "word"


def test_nobody_is_asked_where_no_flavor_wants_it(cloud: Place, service: Receiver) -> None:
    assert cloud.boot(networks=())[0].node == "n1"
    plain = under(cloud, "filter", scheduler_filters="RamFilter")
    assert plain.boot(asks("trusted"), networks=())[0].node is not None
    assert service.got == []


def test_a_level_that_is_none_is_refused(cloud: Place) -> None:
    with pytest.raises(BadRequest, match="'fair' must be one of trusted, untrusted, unknown"):
        cloud.boot(asks("fair"), networks=())


@pytest.mark.parametrize(
    "answer",
    [
        lambda exchange: exchange.say(500, b"{}"),
        lambda exchange: exchange.say(200, b"no json"),
        lambda exchange: exchange.say(200, b'{"hosts": [{"host_name": "compute-2"}]}'),
        lambda exchange: exchange.say(200, b"[" * 50_000),
        lambda exchange: exchange.hang(),
        lambda exchange: exchange.say(200, b"x" * 70_000),
    ],
)
def test_while_the_service_fails_no_host_is_trusted(cloud: Place, service: Receiver, answer: Any) -> None:
    service.answer = answer
    impatient = Trust(AttestationService(service.url, "word", 0.3))
    failing = replace(cloud, compute=replace(cloud.compute, trust=impatient))
    assert failing.boot(asks("trusted"), networks=())[0].status == ERROR
    assert failing.boot(asks("unknown"), networks=())[0].node == "n1"
    service.answer = telling({OTHER: "trusted"})
    patient = replace(impatient, service=AttestationService(service.url, "word", 60))
    again = replace(cloud, compute=replace(cloud.compute, trust=patient))
    assert again.boot(asks("trusted"), networks=())[0].node == "n3", "a failure is not kept"


def test_what_it_says_is_kept_for_a_while_and_no_longer(cloud: Place, service: Receiver) -> None:
    now = [0.0]
    kept = Trust(AttestationService(service.url), 60, lambda: now[0])
    engine = cloud.compute.engine
    assert kept.levels(engine) == {OTHER: "trusted", SERVICE: "untrusted"}
    service.answer = telling({SERVICE: "TRUSTED", OTHER: "doubtful"})
    now[0] = 59.9
    assert kept.levels(engine) == {OTHER: "trusted", SERVICE: "untrusted"}
    now[0] = 60.0
    assert kept.levels(engine) == {OTHER: "unknown", SERVICE: "trusted"}
    assert len(service.got) == 2


def test_many_hosts_are_asked_for_in_several_requests(service: Receiver) -> None:
    hosts = [f"h{number}" for number in range(attestation.BATCH + 1)]
    service.answer = telling(dict.fromkeys(hosts, "trusted"))
    assert AttestationService(service.url).levels(hosts) == dict.fromkeys(hosts, "trusted")
    assert sorted(len(got.body["hosts"]) for got in service.got) == [1, attestation.BATCH]


def test_resizes_returns_and_estimates_ask_too(cloud: Place) -> None:
    server = cloud.boot_one(asks("untrusted"), networks=())
    with pytest.raises(NoValidHost, match="TrustedFilter"):
        resize.resize(cloud.compute, server.id, asks("trusted"))
    shelve(cloud.compute, server.id)
    cloud.settle()
    unshelve.unshelve(cloud.compute, server.id)
    assert cloud.look(server.id).node in ("n1", "n2")
    assert room(cloud.compute, request(asks("trusted"), count=2)) == 2
    assert room(cloud.compute, request(asks("unknown"), count=2)) == 0


def test_the_settings_say_where_it_is() -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"
    found = build(
        Settings(
            database_url=url,
            scheduler_filters=FILTERS,
            attestation_url="https://attest.example/v1/",
            attestation_auth_blob="word",
            attestation_auth_timeout=5,
            attestation_seconds=2.0,
        )
    ).compute.trust
    assert (found.service, found.keep_seconds) == (AttestationService("https://attest.example/v1/", "word", 2.0), 5)
    assert build(Settings(database_url=url)).compute.trust.service is None
    for settings in (Settings(scheduler_filters=FILTERS), Settings(attestation_url="ftp://x")):
        with pytest.raises(SettingError, match="ATTESTATION_URL"):
            build(replace(settings, database_url=url))
