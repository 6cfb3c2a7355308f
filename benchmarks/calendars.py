"""Time of a calendar feed by its number of leases, over HTTP, whole and unchanged."""

from flask import Flask
from sqlalchemy import text

from api import create_app
from api.auth import CALENDARS
from api.rate_limit import Allowance
from benchmarks import scratch
from benchmarks.figures import head, line, spread, timed
from climate import log_setup
from climate.bootstrap import Deployment
from climate.service.calendars import feeds
from climate.store.notices.calendar_feeds import Scope

LEASES = (10, 100, 1000)

_LEASES = text("""
    WITH made AS (
        INSERT INTO leases (id, name, project_id, user_id, start_date, end_date, status, degraded, deleting, gone,
                            version, created_at, updated_at)
        SELECT gen_random_uuid(), 'seeded lease ' || n, :project, :user, now() + n * interval '1 hour',
               now() + (n + 2) * interval '1 hour', 'PENDING', false, false, n % 10 = 0, 1 + n % 5, now(), now()
        FROM generate_series(1, :count) AS n
        RETURNING id)
    INSERT INTO reservations (id, lease_id, position, resource_type, status, spec, exists_before_start,
                              resources_changed)
    SELECT gen_random_uuid(), id, 0, 'physical:host', 'pending', '{"min": 1, "max": 4}', false, false FROM made
""")

_MEMBER = (
    "INSERT INTO identity_projects (id, name) VALUES ('bench-project', 'bench')",
    "INSERT INTO identity_users (id, name) VALUES ('bench-user', 'bench')",
    "INSERT INTO identity_role_assignments (user_id, project_id, role)"
    " VALUES ('bench-user', 'bench-project', 'member')",
)


def main(short: bool) -> None:
    log_setup.configure(level="ERROR")
    head("What a calendar feed costs")
    with scratch.place() as place:
        deployment = place.deployment(pool_size=2)
        app = create_app(deployment)
        app.extensions[CALENDARS] = Allowance(0)
        with deployment.climate.engine.begin() as conn:
            for statement in _MEMBER:
                conn.execute(text(statement))
        known = 0
        for count in LEASES:
            with deployment.climate.engine.begin() as conn:
                given = {"project": scratch.CALLER.project_id, "user": scratch.CALLER.user_id, "count": count - known}
                conn.execute(_LEASES, given)
            known = count
            _measure(app, deployment, count, 20 if short else 200)
        deployment.climate.engine.dispose()


def _measure(app: Flask, deployment: Deployment, count: int, times: int) -> None:
    _, secret = feeds.create(deployment.climate, scratch.CALLER, "bench", Scope.PROJECT)
    client, path = app.test_client(), f"/v1/calendar/{secret}.ics"
    answer = client.get(path)
    if answer.status_code != 200 or answer.get_data().count(b"BEGIN:VEVENT") != count:
        raise RuntimeError(f"a feed of {count} leases was answered with {answer.status_code}")
    tag = {"If-None-Match": answer.headers["ETag"]}
    line(f"{count:,} leases", spread(timed(lambda: client.get(path), times)))
    line(f"{count:,} leases, unchanged", spread(timed(lambda: client.get(path, headers=tag), times)))
