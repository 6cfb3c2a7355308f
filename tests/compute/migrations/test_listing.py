"""Lists of migrations by their filters, and the deletion of old ones."""

from datetime import timedelta

from sqlalchemy import Connection, text

from climate.compute.migrations import departed_servers, listing
from climate.compute.migrations.departed_servers import KEPT_SECONDS
from climate.compute.store.servers import migrations
from tests.compute.cloud_factory import Place

INSERT = text("""
    INSERT INTO compute_migrations (server_id, project_id, user_id, type, status, source_host, source_node, dest_host,
                                    dest_node, dest_ip, old_flavor, new_flavor, created_at, updated_at)
    SELECT gen_random_uuid(), 'demo', 'dora', 'migration', 'confirmed', :source, 'n1', :dest, 'n2', '', '1', '1',
           now() - make_interval(secs => :age), now() - make_interval(secs => :age)
    RETURNING uuid::text
""")


def made(conn: Connection, source: str, dest: str, age: float) -> str:
    """Insert a finished migration of a deleted server that is so many seconds old; return its uuid."""
    return str(conn.scalar(INSERT, {"source": source, "dest": dest, "age": age}))


def test_migrations_of_a_host_are_those_from_it_and_to_it_newest_first(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        away, back, around = made(conn, "a", "b", 30), made(conn, "b", "a", 20), made(conn, "a", "a", 10)
        made(conn, "b", "c", 5)
    assert [one.uuid for one in listing.listed(here.compute, {"host": "a"}, 10)] == [around, back, away]
    assert [one.uuid for one in listing.listed(here.compute, {"host": "a"}, 10, after=around)] == [back, away]
    assert [one.uuid for one in listing.listed(here.compute, {"host": "a", "source_host": "b"}, 10)] == [back]


def test_migrations_that_changed_since_a_moment_are_listed(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        made(conn, "a", "b", 60)
        late = made(conn, "a", "b", 10)
        since = here.compute.now(conn) - timedelta(seconds=30)
    assert [one.uuid for one in listing.listed(here.compute, {"changed_since": since}, 10)] == [late]


def test_old_migrations_of_deleted_servers_are_deleted_in_portions(here: Place) -> None:
    with here.compute.engine.begin() as conn:
        made(conn, "a", "b", 2 * KEPT_SECONDS)
        old = made(conn, "a", "b", KEPT_SECONDS + 60)
        kept = made(conn, "a", "b", KEPT_SECONDS - 3600)
        migrations.forget(conn, here.compute.now(conn), KEPT_SECONDS, most=1)
    assert {one.uuid for one in listing.listed(here.compute, {}, 10)} == {old, kept}
    departed_servers.forget(here.compute)
    assert [one.uuid for one in listing.listed(here.compute, {}, 10)] == [kept]
