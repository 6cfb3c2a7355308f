"""What a machine asks that has read the OpenAPI document: never a 5xx, a status or a shape that is not in it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from schemathesis import Case

from climate.store.engine import connect
from tests.api.reservation.api_clients import Person, app_over, hosts_of, order, reservation, run_due
from tests.api.reservation.test_leaks import MATRIX
from tests.campaign import FULL, length
from tests.conftest import Clock
from tests.service.floating_ip_factory import NETWORK, addresses_wanted, registered, spelled
from tests.service.storage_factory import pool
from tests.slow.machines import MODES, statuses

pytestmark = pytest.mark.slow

EXAMPLES = length(4, 100)
"""Requests per operation, person and mode."""

NEVER_SERVED = {
    ("POST", "/reservation/v1/os-hosts"),
    ("POST", "/reservation/v1/events/<event_id>/requeue"),
    ("DELETE", "/reservation/v1/os-hosts/<host_id>"),
    ("PUT", "/reservation/v1/os-hosts/<host_id>/allocation"),
    ("GET", "/reservation/v1/os-hosts/<host_id>/power"),
    ("DELETE", "/reservation/v1/os-hosts/<host_id>/power"),
    ("POST", "/reservation/v1/os-hosts/<host_id>/power/on"),
    ("POST", "/reservation/v1/os-hosts/<host_id>/power/off"),
    ("POST", "/reservation/v1/pools/<pool_name>/moves"),
}
"""A machine guesses neither names of hosts nor which lease has one, no event has failed, leases hold the hosts, and
whether a host can be switched is a matter of order."""


@pytest.fixture(scope="module")
def known(
    make_database: Callable[..., str], engine_template: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Any]]:
    """An app, and things in it that requests can be about."""
    engine = connect(make_database(engine_template))
    climate = hosts_of(engine, Clock(), 20)
    app = app_over(climate, tmp_path_factory.mktemp("home"))
    member = Person(app, "member")
    everything = [reservation(min=20, max=20), addresses_wanted(1)]
    addresses = registered(climate, 5)
    running = member.lease(start_date="now", end_date="2030-06-01 10:00", reservations=everything)
    run_due(climate)
    pending = member.lease(start_date="2031-01-01 10:00", end_date="2031-01-02 10:00")
    window = {"host_id": "2", "start_date": "2032-01-01 10:00", "reason": "new memory"}
    planned = Person(app, "admin")("POST", "/maintenances", window).json["maintenance"]
    held = member.lease(start_date="2033-01-01 10:00", end_date="2033-01-02 10:00", hold_seconds=600)
    repeated = order(start_date="2034-01-01 10:00", end_date="2034-01-02 10:00")
    repeated["repeat"] = {"rule": "FREQ=WEEKLY;COUNT=2"}
    series = member("POST", "/series", repeated).json["series"]
    feed = member("POST", "/calendar-feeds", {}).json["calendar_feed"]
    yield {
        "app": app,
        "maintenance_id": [planned["id"]],
        "lease_id": [running["id"], pending["id"]],
        "hold_id": [held["id"]],
        "series_id": [series["id"]],
        "notice_id": ["1", "2"],
        "feed_id": [feed["id"]],
        "secret": [feed["url"].rpartition("/")[2].removesuffix(".ics")],
        "host_id": ["1", "20"],
        "name": ["gpu"],
        "event_id": [running["events"][0]["id"], pending["events"][0]["id"]],
        "limited_project": ["somebody", "default"],
        "pool_name": ["reservation", "lent", "maintenance"],
        "floatingip_id": [str(one.id) for one in addresses],
        "storage_pool_id": [str(pool(climate).id), str(pool(climate, 10, "slow").id)],
    }
    engine.dispose()


@pytest.fixture(scope="module")
def described(known: dict[str, Any]) -> Any:
    return schemathesis.openapi.from_wsgi("/openapi.json", known["app"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["admin", "member"])
@pytest.mark.parametrize(("method", "path"), MATRIX, ids=[" ".join(route) for route in MATRIX])
def test_a_route(known: dict[str, Any], described: Any, method: str, path: str, name: str, mode: str) -> None:
    def aim(case: Case[Any], number: int) -> None:
        for parameter in case.path_parameters or {}:
            case.path_parameters[parameter] = known[parameter][number % len(known[parameter])]
        if isinstance(case.body, dict):
            dates = {"start_date": "2030-08-01 10:00", "end_date": "2030-08-01 11:00", "before_end_date": None}
            outside = {"floating_network_id": NETWORK, "floating_ip_address": spelled(200 + number % 50)}
            told = dates | outside
            case.body.update({key: value for key, value in told.items() if isinstance(case.body.get(key), str)})

    operation = described[path.replace("<", "{").replace(">", "}")][method]
    seen = statuses(operation, mode, name, aim, EXAMPLES)
    if FULL and mode == "as told" and name == "admin":  # a few requests need not reach every success
        assert min(seen) < 400 or (method, path) in NEVER_SERVED
