"""Every route, asked by everybody: nobody sees or touches what is another project's."""

from collections.abc import Mapping
from typing import Any

import pytest
from flask import Flask

from climate.context import Climate
from tests.api.reservation.api_clients import PEOPLE, Person, order, reservation
from tests.service.floating_ip_factory import NETWORK, addresses_wanted, registered, spelled
from tests.service.storage_factory import pool, storage_wanted

ASKERS = ("nobody", "stranger", "without a role", "reader", "member", "admin")

V1 = "/reservation/v1"
LEASE = f"{V1}/leases/<lease_id>"
HELD = f"{V1}/holds/<hold_id>"
SERIES = f"{V1}/series/<series_id>"
REPEAT = {"rule": "FREQ=DAILY;COUNT=2"}
HOST = f"{V1}/os-hosts/<host_id>"
WINDOW = f"{V1}/maintenances/<maintenance_id>"
NOBODYS = "00000000-0000-4000-8000-000000000000"
POOL = f"{V1}/pools/<pool_name>"
ADDRESS = f"{V1}/floatingips/<floatingip_id>"
STORAGE = f"{V1}/storage-pools/<storage_pool_id>"
FOR_ADMINS = (401, 403, 403, 403, 403)

MATRIX: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("GET", "/reservation"): (300,) * 6,
    ("GET", "/reservation/versions"): (300,) * 6,
    ("GET", V1): (200,) * 6,
    ("GET", f"{V1}/leases"): (401, 200, 403, 200, 200, 200),
    ("POST", f"{V1}/leases"): (401, 201, 403, 403, 201, 201),
    ("GET", LEASE): (401, 404, 403, 200, 200, 200),
    ("GET", f"{LEASE}/history"): (401, 404, 403, 200, 200, 200),
    ("GET", f"{LEASE}/hosts"): (401, 404, 403, 200, 200, 200),
    ("PUT", LEASE): (401, 404, 403, 403, 200, 200),
    ("DELETE", LEASE): (401, 404, 403, 403, 204, 204),
    ("POST", f"{LEASE}/confirm"): (401, 404, 403, 403, 409, 409),
    ("GET", f"{LEASE}/subleases"): (401, 404, 403, 200, 200, 200),
    ("POST", f"{LEASE}/subleases"): (401, 404, 403, 403, 400, 400),
    ("GET", f"{V1}/series"): (401, 200, 403, 200, 200, 200),
    ("POST", f"{V1}/series"): (401, 201, 403, 403, 201, 201),
    ("GET", SERIES): (401, 404, 403, 200, 200, 200),
    ("PUT", SERIES): (401, 404, 403, 403, 200, 200),
    ("DELETE", SERIES): (401, 404, 403, 403, 204, 204),
    ("POST", f"{V1}/availability"): (401, 200, 403, 403, 200, 200),
    ("GET", f"{V1}/holds"): (401, 200, 403, 200, 200, 200),
    ("POST", f"{V1}/holds"): (401, 404, 403, 403, 404, 404),
    ("GET", HELD): (401, 404, 403, 200, 200, 200),
    ("POST", f"{HELD}/renew"): (401, 404, 403, 403, 200, 200),
    ("DELETE", HELD): (401, 404, 403, 403, 204, 204),
    ("GET", f"{V1}/os-hosts"): (*FOR_ADMINS, 200),
    ("POST", f"{V1}/os-hosts"): (*FOR_ADMINS, 409),
    ("GET", HOST): (*FOR_ADMINS, 200),
    ("PUT", HOST): (*FOR_ADMINS, 200),
    ("DELETE", HOST): (*FOR_ADMINS, 409),
    ("GET", f"{V1}/os-hosts/properties"): (401, 200, 403, 200, 200, 200),
    ("PATCH", f"{V1}/os-hosts/properties/<name>"): (*FOR_ADMINS, 200),
    ("GET", f"{V1}/os-hosts/allocations"): (*FOR_ADMINS, 200),
    ("GET", f"{HOST}/allocation"): (*FOR_ADMINS, 200),
    ("PUT", f"{HOST}/allocation"): (*FOR_ADMINS, 404),
    ("GET", f"{HOST}/health"): (*FOR_ADMINS, 200),
    ("POST", f"{HOST}/fail"): (*FOR_ADMINS, 200),
    ("POST", f"{HOST}/heal"): (*FOR_ADMINS, 200),
    ("GET", f"{V1}/maintenances"): (*FOR_ADMINS, 200),
    ("POST", f"{V1}/maintenances"): (*FOR_ADMINS, 409),
    ("GET", WINDOW): (*FOR_ADMINS, 200),
    ("GET", f"{WINDOW}/history"): (*FOR_ADMINS, 200),
    ("PUT", WINDOW): (*FOR_ADMINS, 200),
    ("DELETE", WINDOW): (*FOR_ADMINS, 200),
    ("PUT", f"{HOST}/reservable"): (*FOR_ADMINS, 200),
    ("GET", f"{HOST}/history"): (*FOR_ADMINS, 200),
    ("GET", f"{V1}/pools"): (*FOR_ADMINS, 200),
    ("GET", POOL): (*FOR_ADMINS, 200),
    ("PUT", POOL): (*FOR_ADMINS, 200),
    ("GET", f"{POOL}/history"): (*FOR_ADMINS, 200),
    ("GET", f"{POOL}/hosts"): (*FOR_ADMINS, 200),
    ("GET", f"{POOL}/backlog"): (*FOR_ADMINS, 200),
    ("GET", f"{POOL}/plan"): (*FOR_ADMINS, 200),
    ("POST", f"{POOL}/moves"): (*FOR_ADMINS, 200),
    ("PUT", f"{HOST}/power"): (*FOR_ADMINS, 200),
    ("GET", f"{HOST}/power"): (*FOR_ADMINS, 200),
    ("GET", f"{V1}/power"): (*FOR_ADMINS, 200),
    ("GET", f"{V1}/power/report"): (*FOR_ADMINS, 200),
    ("POST", f"{HOST}/power/on"): (*FOR_ADMINS, 200),
    ("POST", f"{HOST}/power/off"): (*FOR_ADMINS, 200),
    ("DELETE", f"{HOST}/power"): (*FOR_ADMINS, 409),
    ("GET", f"{V1}/floatingips"): (401, 200, 403, 200, 200, 200),
    ("POST", f"{V1}/floatingips"): (*FOR_ADMINS, 409),
    ("GET", f"{V1}/floatingips/allocations"): (*FOR_ADMINS, 200),
    ("GET", ADDRESS): (401, 200, 403, 200, 200, 200),
    ("GET", f"{ADDRESS}/allocation"): (*FOR_ADMINS, 200),
    ("DELETE", ADDRESS): (*FOR_ADMINS, 409),
    ("GET", f"{V1}/storage-pools"): (401, 200, 403, 200, 200, 200),
    ("POST", f"{V1}/storage-pools"): (*FOR_ADMINS, 409),
    ("GET", f"{V1}/storage-pools/allocations"): (*FOR_ADMINS, 200),
    ("GET", STORAGE): (401, 200, 403, 200, 200, 200),
    ("PUT", STORAGE): (*FOR_ADMINS, 200),
    ("GET", f"{STORAGE}/allocation"): (*FOR_ADMINS, 200),
    ("DELETE", STORAGE): (*FOR_ADMINS, 409),
    ("GET", f"{V1}/plugins"): (401, 200, 403, 200, 200, 200),
    ("GET", f"{V1}/events"): (*FOR_ADMINS, 200),
    ("POST", f"{V1}/events/<event_id>/requeue"): (*FOR_ADMINS, 409),
    ("GET", f"{V1}/notices"): (401, 200, 403, 200, 200, 200),
    ("GET", f"{V1}/limits"): (401, 200, 403, 200, 200, 200),
    ("GET", f"{V1}/limits/<limited_project>"): (*FOR_ADMINS, 200),
    ("GET", f"{V1}/limits/<limited_project>/history"): (*FOR_ADMINS, 200),
    ("PUT", f"{V1}/limits/<limited_project>"): (*FOR_ADMINS, 200),
    ("DELETE", f"{V1}/limits/<limited_project>"): (*FOR_ADMINS, 204),
    ("GET", f"{V1}/audit"): (*FOR_ADMINS, 200),
    ("GET", f"{V1}/usage"): (401, 200, 403, 200, 200, 200),
    ("GET", f"{V1}/timeline"): (401, 200, 403, 200, 200, 200),
    ("GET", f"{V1}/events/stream"): (401, 200, 403, 200, 200, 200),
    ("POST", f"{V1}/notices/<notice_id>/resend"): (*FOR_ADMINS, 404),
    ("GET", f"{V1}/mail-preferences"): (401, 200, 403, 200, 200, 200),
    ("PUT", f"{V1}/mail-preferences"): (401, 200, 403, 200, 200, 200),
    ("GET", f"{V1}/calendar-feeds"): (401, 200, 403, 200, 200, 200),
    ("POST", f"{V1}/calendar-feeds"): (401, 201, 403, 201, 201, 201),
    ("DELETE", f"{V1}/calendar-feeds/<feed_id>"): (401, 404, 403, 404, 204, 204),
    ("GET", f"{V1}/calendar/<secret>.ics"): (404,) * 6,
}
"""Route -> the answer to each of ASKERS, about a lease of the project of `reader` and `member`."""

BODIES: Mapping[tuple[str, str], dict[str, Any]] = {
    ("POST", f"{V1}/leases"): order(name="own"),
    ("POST", f"{V1}/availability"): {"reservations": [reservation()], "duration": 3600},
    ("POST", f"{V1}/holds"): {"offer": "none"},
    ("PUT", LEASE): {"name": "changed"},
    ("POST", f"{LEASE}/subleases"): {"name": "s", "project_id": "project", "end_date": "2031-01-02 9:00", "hosts": 1},
    ("POST", f"{V1}/series"): {**order(name="own-series"), "repeat": REPEAT},
    ("PUT", SERIES): {"name": "changed"},
    ("POST", f"{V1}/os-hosts"): {"name": "h1"},
    ("PUT", HOST): {"rack": "4"},
    ("PATCH", f"{V1}/os-hosts/properties/<name>"): {"private": True},
    ("PUT", f"{HOST}/allocation"): {"lease_id": NOBODYS},
    ("POST", f"{HOST}/fail"): {"reason": "smoke"},
    ("POST", f"{V1}/maintenances"): {"host_id": "1", "start_date": "2031-01-01 11:00", "reason": "new memory"},
    ("PUT", WINDOW): {"reason": "new disks"},
    ("PUT", f"{V1}/limits/<limited_project>"): {"leases": 5},
    ("PUT", f"{HOST}/reservable"): {"reservable": False},
    ("POST", f"{V1}/floatingips"): {"floating_network_id": NETWORK, "floating_ip_address": spelled(10)},
    ("POST", f"{V1}/storage-pools"): {"name": "b", "storage_class": "ssd", "backend": "fast", "capacity_gb": 1},
    ("PUT", STORAGE): {"closed": True},
    ("PUT", POOL): {"target": 2},
    ("POST", f"{POOL}/moves"): {"hosts": ["2"]},
    ("POST", f"{V1}/calendar-feeds"): {"name": "own"},
    ("PUT", f"{V1}/mail-preferences"): {"topics": ["start"]},
    ("PUT", f"{HOST}/power"): {"driver": "memory", "settings": {"shutdown_seconds": 60}},
}


def routes(app: Flask) -> set[tuple[str, str]]:
    """Method and path of everything below /reservation."""
    return {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith("/reservation")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }


def test_every_route_is_in_the_matrix(standing: tuple[Flask, Climate]) -> None:
    assert routes(standing[0]) == set(MATRIX)


@pytest.mark.parametrize("place", range(len(ASKERS)), ids=ASKERS)
def test_who_gets_what(app: Flask, member: Person, admin: Person, climate: Climate, place: int) -> None:
    admin("PATCH", "/os-hosts/properties/gpu_count", {"private": True})
    dates = {"start_date": "2031-01-01 10:00", "end_date": "2031-01-02 10:00"}
    address, fast = registered(climate, 1)[0], pool(climate)
    lease = member.lease(
        "hidden-name", **dates, reservations=[reservation(min=8, max=8), addresses_wanted(1), storage_wanted()]
    )
    hold = member.lease("hidden-hold", hold_seconds=600)
    repeated = member.done(member("POST", "/series", {**order(name="hidden-series"), "repeat": REPEAT}), 201)["series"]
    window = {"host_id": "2", "start_date": "2032-01-01 10:00", "reason": "new memory"}
    planned = admin("POST", "/maintenances", window).json["maintenance"]
    feed = member.done(member("POST", "/calendar-feeds", {}), 201)["calendar_feed"]
    names = {
        "<lease_id>": lease["id"],
        "<hold_id>": hold["id"],
        "<series_id>": repeated["id"],
        "<maintenance_id>": planned["id"],
        "<host_id>": "1",
        "<name>": "gpu_count",
        "<event_id>": lease["events"][0]["id"],
        "<limited_project>": "project",
        "<pool_name>": "reservation",
        "<floatingip_id>": str(address.id),
        "<storage_pool_id>": str(fast.id),
        "<feed_id>": feed["id"],
        "<secret>": "A" * 43,
    }
    secrets = [
        "hidden-name",
        "hidden-hold",
        lease["id"],
        lease["reservations"][0]["id"],
        *(event["id"] for event in lease["events"]),
    ]
    asker = Person(app, ASKERS[place])
    for route in sorted(MATRIX, key=lambda route: (route[0] == "DELETE", route[1] == LEASE)):
        method, rule = route
        path = rule
        for mark, name in names.items():
            path = path.replace(mark, name)
        headers = {"X-Auth-Token": asker.name}
        answer = app.test_client().open(path, method=method, headers=headers, json=BODIES.get(route))
        assert answer.status_code == MATRIX[route][place], (route, answer.get_data(as_text=True))
        if ASKERS[place] in ("nobody", "stranger", "without a role"):
            told = answer.get_data(as_text=True).replace(f"'lease_id': '{lease['id']}'", "")
            assert not [secret for secret in secrets if secret in told], route
            assert answer.status_code in (300, 401, 403) or "gpu_count" not in told, route
    if ASKERS[place] not in ("member", "admin"):
        assert member.get(f"/leases/{lease['id']}")["lease"] == lease


def test_the_askers_are_known() -> None:
    assert set(ASKERS) - {"nobody"} == set(PEOPLE)
