"""Whether the services of the bundled cloud are at work, in /readyz and /metrics."""

import re

import pytest
from sqlalchemy import text

from tests.api.compute.api_clients import Person, World
from tests.compute.cloud_factory import SERVICE


@pytest.mark.parametrize(
    ("name", "table", "command"),
    [("compute", "compute_services", "service list"), ("network", "compute_network_hosts", "network hosts")],
)
def test_silent_services_of_the_cloud_are_reported_with_the_moment(
    there: World, name: str, table: str, command: str
) -> None:
    seen = []
    hosts = (SERVICE, "other")
    for beats in (("10 s", "20 s"), ("10 s", "10 days"), ("10 days", "20 days")):
        with there.climate.engine.begin() as conn:
            conn.execute(text(f"DELETE FROM {table} WHERE host != :host"), {"host": SERVICE})
            for host, ago in zip(hosts, beats, strict=True):
                heard = text(f"""
                    INSERT INTO {table} (host, beat_at) VALUES (:host, now() - CAST(:ago AS interval))
                    ON CONFLICT (host) DO UPDATE SET beat_at = excluded.beat_at
                """)
                conn.execute(heard, {"host": host, "ago": ago})
        found = Person(there.app, "admin")("GET", "/readyz").json["checks"][name]
        seen.append((found["ok"], found["warns"], re.sub(r"since \S+Z", "since T", found["detail"])))
    assert seen == [
        (True, False, "2 heard of"),
        (True, True, f"1 of 2 {name} services are silent, one since T: see `climate {command}`"),
        (False, False, f"no {name} service is heard of since T: start `climate worker` on its machine"),
    ]


def test_child_zones_that_nobody_polls_are_reported(there: World) -> None:
    seen = []
    for ago in (None, "10 s", "10 days"):
        with there.climate.engine.begin() as conn:
            conn.execute(text("DELETE FROM compute_zones"))
            made = text(
                "INSERT INTO compute_zones (api_url, username, password, created_at, updated_at, polled_at) "
                "VALUES ('http://child', 'u', 'p', now(), now(), now() - CAST(:ago AS interval))"
            )
            conn.execute(made, {"ago": ago})
        seen.append(Person(there.app, "admin")("GET", "/readyz").json["checks"]["zones"]["ok"])
    with there.climate.engine.begin() as conn:
        conn.execute(text("DELETE FROM compute_zones"))
    assert seen == [True, True, False]
