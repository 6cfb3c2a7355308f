"""The snapshot kept between requests is what a query of one's own would show, whatever commits when."""

import logging
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Connection, Engine, RootTransaction, event, text
from sqlalchemy.exc import IntegrityError, OperationalError

from climate.compute.models.server import IO_TASKS
from climate.compute.scheduler.hosts.snapshot import SLACK, moved_on, whole
from climate.compute.scheduler.hosts.snapshot_cache import SnapshotCache
from climate.compute.scheduler.hosts.table import Hosts, Label
from climate.compute.store.nodes.scheduler_snapshot import NODE, Reading
from climate.store.engine import connect
from tests.campaign import length
from tests.compute.cloud_factory import empty
from tests.compute.node_tables import table
from tests.databases import connected

DOWN = 600.0

SQL = """
    SELECT n.*, n.used_servers, p.metadata ->> 'blazar:owner' AS owner, p.metadata ->> 'climate:shared_with' AS shared,
           coalesce(p.metadata ->> 'climate:closed', '') = 'true' AS closed, NOT v.enabled AS disabled,
           n.present AND NOT v.forced_down AND n.maintenance IS NULL AND v.beat_at > now() - make_interval(secs => 600)
               AS up,
           (SELECT count(*) FROM compute_servers s WHERE s.node_id = n.id AND s.task = ANY(:tasks)) AS io_ops,
           (SELECT json_agg(json_build_array(a.id, a.name, a.metadata) ORDER BY a.id)
            FROM compute_aggregate_nodes m JOIN compute_aggregates a ON a.id = m.aggregate_id
            WHERE m.node_id = n.id) AS labels
    FROM compute_nodes n JOIN compute_services v ON v.host = n.service_host
    LEFT JOIN compute_aggregates p ON p.name = n.pool
    ORDER BY n.id
"""


def asked_anew(conn: Connection) -> Hosts:
    """All nodes by a plain query."""
    rows = conn.execute(text(SQL), {"tasks": sorted(IO_TASKS)}).mappings()
    return table([{**row, "labels": tuple(Label(*label) for label in row["labels"] or ())} for row in rows])


def told(hosts: Hosts) -> list[dict[str, Any]]:
    """Every value of every node."""
    return [
        {name: _value(getattr(hosts, name), place) for name in Hosts.__slots__ if hasattr(hosts, name)}
        for place in range(len(hosts))
    ]


def _value(column: Any, place: int) -> Any:
    return column.values[column.codes[place]] if hasattr(column, "codes") else column[place]


@pytest.fixture
def database(scratch: str) -> Iterator[Engine]:
    with connected(scratch) as engine:
        empty(engine)
        yield engine


@pytest.fixture
def four(database: Engine) -> Engine:
    """Two services with two nodes each."""
    with database.begin() as conn:
        for host in ("h0", "h1"):
            execute(conn, "INSERT INTO compute_services (host) VALUES (:host)", host=host)
        for number in range(4):
            make_node(conn, f"n{number}", f"h{number % 2}")
    return database


def execute(conn: Connection, statement: str, **given: Any) -> None:
    conn.execute(text(statement), given)


def make_node(conn: Connection, name: str, host: str) -> None:
    execute(
        conn,
        """INSERT INTO compute_nodes (service_host, name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
                                      hypervisor_version) VALUES (:host, :name, 8, 8192, 100, '', 'fake', 1)""",
        host=host,
        name=name,
    )


def use(conn: Connection, name: str, by: int = 1) -> None:
    execute(conn, "UPDATE compute_nodes SET used_vcpus = used_vcpus + :by WHERE name = :name", name=name, by=by)


def take(roster: SnapshotCache, conn: Connection) -> Hosts:
    now: datetime = conn.execute(text("SELECT now()")).scalar_one()
    return roster.take(conn, now, DOWN)


def used(roster: SnapshotCache, engine: Engine) -> list[float]:
    with engine.connect() as conn:
        return list(take(roster, conn).used_vcpus)


def test_what_a_transaction_writes_after_its_own_reading_is_not_missed(four: Engine) -> None:
    """Others have begun and ended since it got its number: no snapshot of its own lists it as one that is under way."""
    roster = SnapshotCache()
    with four.connect() as late, four.connect() as other:
        execute(late, "SELECT pg_current_xact_id()")
        execute(other, "SELECT pg_current_xact_id()")
        other.commit()
        take(roster, late)
        use(late, "n1")
        late.commit()
    assert used(roster, four) == [0, 1, 0, 0]


def test_a_transaction_that_commits_late_is_not_missed(four: Engine) -> None:
    """It has begun before, and commits after, transactions and readings of every kind."""
    roster = SnapshotCache()
    with four.connect() as early, four.connect() as late:
        with early.begin():
            use(early, "n0")
            with late.begin():
                execute(late, "SELECT pg_current_xact_id()")
                assert used(roster, four) == [0, 0, 0, 0]
                with four.begin() as quick:
                    use(quick, "n1")
                assert used(roster, four) == [0, 1, 0, 0]
                use(late, "n2")
                assert used(roster, four) == [0, 1, 0, 0]
            assert used(roster, four) == [0, 1, 1, 0]
            with four.begin() as quick:
                use(quick, "n3")
            assert used(roster, four) == [0, 1, 1, 1]
        assert used(roster, four) == [1, 1, 1, 1]


def test_what_is_rolled_back_has_never_been(four: Engine) -> None:
    roster = SnapshotCache()
    assert used(roster, four) == [0, 0, 0, 0]
    with four.connect() as conn:
        with conn.begin() as transaction:
            use(conn, "n0")
            assert list(take(roster, conn).used_vcpus) == [1, 0, 0, 0], "one sees what one has written"
            assert used(roster, four) == [0, 0, 0, 0], "others do not"
            transaction.rollback()
        assert used(roster, four) == [0, 0, 0, 0]


def test_a_request_consumes_its_own_copy(four: Engine) -> None:
    roster = SnapshotCache()
    with four.connect() as conn:
        first, second = take(roster, conn), take(roster, conn)
        first.used_vcpus[0] += 5
        first.io_ops[0] += 5
        assert (second.used_vcpus[0], second.io_ops[0]) == (0, 0)
        assert take(roster, conn).used_vcpus[0] == 0


def test_who_was_handed_a_moment_keeps_it(four: Engine) -> None:
    roster = SnapshotCache()
    with four.connect() as conn:
        before = take(roster, conn)
    with four.begin() as conn:
        execute(conn, "UPDATE compute_nodes SET memory_mb = 1, pool = NULL, zone = 'z' WHERE name = 'n1'")
    with four.connect() as conn:
        after = take(roster, conn)
    assert (before.ram_mb[1], after.ram_mb[1]) == (8192, 1)
    assert (told(before)[1]["grouping"].zone, told(after)[1]["grouping"].zone) == (None, "z")


def test_silence_is_judged_by_the_clock_alone(four: Engine) -> None:
    roster = SnapshotCache()
    with four.begin() as conn:
        execute(conn, "UPDATE compute_services SET beat_at = '2030-01-01 12:00Z'")
    at = datetime(2030, 1, 1, 12, 9, 59, tzinfo=UTC)
    with four.connect() as conn:
        assert roster.take(conn, at, DOWN).up.all()
        assert not roster.take(conn, at.replace(minute=10, second=0), DOWN).up.any()


@pytest.mark.parametrize("many", [4, 400])
def test_it_is_one_statement_however_many_nodes(four: Engine, many: int) -> None:
    with four.begin() as conn:
        for number in range(4, many):
            make_node(conn, f"n{number}", "h0")
    roster = SnapshotCache()
    seen: list[str] = []
    with four.connect() as conn:
        now = datetime.now(UTC)
        roster.take(conn, now, DOWN)
        event.listen(conn, "before_cursor_execute", lambda *call: seen.append(call[2]))
        roster.take(conn, now, DOWN)
        with four.begin() as other:
            execute(other, "UPDATE compute_nodes SET used_ram_mb = 7")
        assert roster.take(conn, now, DOWN).used_ram_mb.sum() == 7 * many
    assert len(seen) == 2


def test_what_has_not_changed_is_not_read(four: Engine) -> None:
    """Not even while an old transaction is open, which hides from a plain horizon what is newer."""
    roster = SnapshotCache()
    with four.connect() as old, old.begin():
        use(old, "n0")
        with four.begin() as conn:
            use(conn, "n1")
        with four.connect() as conn:
            take(roster, conn)
            base = roster._kept
            take(roster, conn)
            assert base is not None
            assert roster._kept is not None
            assert roster._kept.hosts is base.hosts, "nothing was patched"


def test_what_was_restored_is_what_is_there(four: Engine) -> None:
    """Rows of a dump carry the numbers of old transactions, which the snapshot has long since seen."""
    roster = SnapshotCache()
    with four.begin() as conn:
        execute(conn, "CREATE TABLE dump AS TABLE compute_nodes")
        use(conn, "n0")
    assert used(roster, four) == [1, 0, 0, 0]
    with four.begin() as conn:
        execute(conn, "TRUNCATE compute_nodes CASCADE")
        execute(conn, "INSERT INTO compute_nodes OVERRIDING SYSTEM VALUE TABLE dump")
        execute(conn, "DROP TABLE dump")
    assert used(roster, four) == [0, 0, 0, 0]


def test_pools_that_come_and_go_do_not_pile_up(four: Engine) -> None:
    roster = SnapshotCache()
    for number in range(2 * SLACK):
        with four.begin() as conn:
            execute(conn, "INSERT INTO compute_aggregates (name) VALUES (:pool)", pool=f"p{number}")
            execute(conn, "UPDATE compute_nodes SET pool = :pool WHERE name = 'n0'", pool=f"p{number}")
        with four.connect() as conn:
            hosts = take(roster, conn)
            assert hosts.pool.values[hosts.pool.codes[0]].name == f"p{number}"
    assert len(hosts.pool.values) <= SLACK + 8


def test_gone_nodes_are_named_in_the_log(four: Engine, caplog: pytest.LogCaptureFixture) -> None:
    roster = SnapshotCache()
    used(roster, four)
    with four.begin() as conn:
        execute(conn, "DELETE FROM compute_nodes WHERE name = 'n2'")
    with caplog.at_level(logging.INFO):
        assert len(used(roster, four)) == 3
    assert "Removing dead compute node h0:n2 from scheduler" in caplog.messages


def reading(*nodes: dict[str, Any]) -> Reading:
    ordinary = {
        "service_host": "h",
        "host_ip": "",
        "vcpus": 8,
        "used_vcpus": 0,
        "used_servers": 0,
        "reserved_ram_mb": 0,
        "reserved_disk_mb": 0,
        "ram_ratio": 1.5,
        "cpu_ratio": 16.0,
        "disk_ratio": 1.0,
        "present": True,
        "ready": True,
        "zone": None,
        "pool": None,
        "owner": None,
        "closed": False,
        "shared": None,
        "profile": '["", null, "", [], {}]',
        "metrics": {},
    }
    rows = [ordinary | {"id": place, "name": f"node{place}"} | node for place, node in enumerate(nodes, 1)]
    columns = {name: [row[name] for row in rows] for name in NODE}
    return Reading(nodes=columns, services=[("h", True, False, 0.0)], busy="", own=False, seen="1:1:", origin="")


@pytest.mark.parametrize(
    ("later", "adds"),
    [
        ({"seen": "8:8:"}, True),
        ({"seen": "6:6:"}, False),
        ({"origin": "elsewhere"}, False),
        ({"restructured": True}, False),
    ],
)
def test_changes_are_added_only_to_what_they_are_changes_of(later: dict[str, Any], adds: bool) -> None:
    """Not after a restore, by which the numbers of transactions go back or come from another server."""
    first = replace(reading(), seen="7:7:")
    assert (moved_on(whole(first), replace(first, **later)) is not None) is adds


def test_free_disk_is_the_smaller_of_what_is_promised_and_what_is_there(caplog: pytest.LogCaptureFixture) -> None:
    """FS-31."""

    def disk(total: int, free: int, least: int | None, ram: int) -> dict[str, Any]:
        taken = {"memory_mb": 8192, "used_ram_mb": 8192 - ram, "local_gb": total, "used_disk_mb": (total - free) * 1024}
        return taken | {"disk_least_gb": least}

    moment = whole(
        reading(
            disk(1024, 512, None, 512),
            disk(1024, 1024, 1024, 1024),
            disk(3072, 3072, 3333, 3072),
            disk(8888, 8888, 8192, 8192),
            disk(1, 1, None, 1) | {"service_host": "nobody"},
        )
    )
    hosts = moment.table("", datetime.now(UTC), DOWN)
    assert list(hosts.free_ram_mb) == [512, 1024, 3072, 8192]
    assert list(hosts.free_disk_mb) == [524288, 1048576, 3145728, 8388608]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "No compute service record found for host nobody",
        "Host node3 has more disk space than database expected (3333gb > 3072.0gb)",
    ]


WRITERS = 3


@dataclass
class Writer:
    """A connection with a transaction that may stay open for long; what it writes no other one writes."""

    number: int
    conn: Connection
    open: RootTransaction | None = None

    def does(self, statement: str, **given: Any) -> None:
        """Write, in the open transaction or in a new one; nothing when another is at the row or needs it."""
        self.open = self.open or self.conn.begin()
        try:
            with self.conn.begin_nested():
                self.conn.execute(text(statement), {"mine": self.number, "of": WRITERS, **given})
        except (OperationalError, IntegrityError):
            return

    def ends(self, *, well: bool) -> None:
        if self.open is not None:
            (self.open.commit if well else self.open.rollback)()
            self.open = None


ONE_NODE = "(SELECT id FROM compute_nodes WHERE id % :of = :mine ORDER BY id OFFSET :nth LIMIT 1)"
ONE_AGGREGATE = """
    (SELECT id FROM compute_aggregates WHERE kind = 'aggregate' AND id % :of = :mine ORDER BY id OFFSET :nth LIMIT 1)
"""
MOVES = {
    "boots": f"""UPDATE compute_nodes SET used_vcpus = used_vcpus + 1, used_ram_mb = used_ram_mb + 512,
                                         used_servers = used_servers + 1 WHERE id = {ONE_NODE}""",
    "deletes": f"UPDATE compute_nodes SET used_vcpus = 0, used_ram_mb = 0, used_servers = 0 WHERE id = {ONE_NODE}",
    "reports": f"UPDATE compute_nodes SET stats = jsonb_build_object('a', :other), zone = 'z' WHERE id = {ONE_NODE}",
    "reserves": f"UPDATE compute_nodes SET reserved_ram_mb = :other, disk_least_gb = :other WHERE id = {ONE_NODE}",
    "maintains": f"UPDATE compute_nodes SET maintenance = nullif('', left('x', :other % 2)) WHERE id = {ONE_NODE}",
    "vanishes": f"UPDATE compute_nodes SET present = NOT present WHERE id = {ONE_NODE}",
    "lends": f"UPDATE compute_nodes SET pool = 'pool' || (:other % 3) WHERE id = {ONE_NODE}",
    "takes back": f"UPDATE compute_nodes SET pool = NULL WHERE id = {ONE_NODE}",
    "goes": f"DELETE FROM compute_nodes WHERE id = {ONE_NODE}",
    "disables": "UPDATE compute_services SET enabled = NOT enabled WHERE host = 'h' || :mine",
    "falls silent": """UPDATE compute_services SET beat_at = now() - make_interval(secs => 1000 * (:other % 2))
                       WHERE host = 'h' || :mine""",
    "groups": """INSERT INTO compute_aggregates (name, kind, metadata)
                 VALUES (gen_random_uuid()::text, 'aggregate', jsonb_build_object('k', CAST(:other AS text)))""",
    "labels": f"""UPDATE compute_aggregates SET metadata = jsonb_build_object('k', CAST(:other AS text))
                  WHERE id = {ONE_AGGREGATE}""",
    "ungroups": f"DELETE FROM compute_aggregates WHERE id = {ONE_AGGREGATE}",
    "joins": f"""INSERT INTO compute_aggregate_nodes (aggregate_id, node_id)
                 SELECT a.id, n.id FROM compute_aggregates a, compute_nodes n
                 WHERE a.id = {ONE_AGGREGATE} AND n.id % :of = :mine ON CONFLICT DO NOTHING""",
    "leaves": "DELETE FROM compute_aggregate_nodes WHERE node_id % :of = :mine AND node_id % 2 = :other % 2",
    "makes": f"""INSERT INTO compute_servers (id, name, project_id, user_id, status, task, vcpus, ram_mb, disk_mb,
                                              build_id, launch_index, node_id)
                 SELECT gen_random_uuid(), '', '', '', 'BUILD', 'spawning', 1, 1, 1, '', 0, id
                 FROM compute_nodes WHERE id = {ONE_NODE}""",
    "has made": f"UPDATE compute_servers SET task = NULL, status = 'ACTIVE' WHERE node_id = {ONE_NODE}",
    "drops": f"DELETE FROM compute_servers WHERE node_id = {ONE_NODE}",
}
"""What happens in a cloud, each to the nodes, services and aggregates of one writer."""


class Cloud(RuleBasedStateMachine):
    """Writers whose transactions overlap as they like, and one roster that is asked after each step."""

    engine: Engine

    def __init__(self) -> None:
        super().__init__()
        empty(self.engine)
        with self.engine.begin() as conn:
            for number in range(3):
                execute(conn, "INSERT INTO compute_aggregates (name) VALUES (:pool)", pool=f"pool{number}")
        self.roster = SnapshotCache()
        self.reader = self.engine.connect()
        self.writers = [Writer(number, self.engine.connect()) for number in range(WRITERS)]
        for writer in self.writers:
            execute(writer.conn, "SET lock_timeout = '5ms'")
            writer.conn.commit()

    @initialize()
    def begins(self) -> None:
        with self.engine.begin() as conn:
            for number in range(WRITERS):
                execute(conn, "INSERT INTO compute_services (host) VALUES (:host)", host=f"h{number}")
            for number in range(2 * WRITERS):
                make_node(conn, f"n{number}", f"h{number % WRITERS}")

    @rule(
        writer=st.sampled_from(range(WRITERS)),
        move=st.sampled_from(sorted(MOVES)),
        numbers=st.tuples(st.integers(0, 2), st.integers(0, 5)),
        at_once=st.booleans(),
    )
    def happens(self, writer: int, move: str, numbers: tuple[int, int], at_once: bool) -> None:
        known = dict(zip(("nth", "other"), numbers, strict=True))
        self.writers[writer].does(
            MOVES[move], **{key: value for key, value in known.items() if f":{key}" in MOVES[move]}
        )
        if at_once:
            self.writers[writer].ends(well=True)

    @rule(writer=st.sampled_from(range(WRITERS)))
    def comes(self, writer: int) -> None:
        self.writers[writer].does(
            """INSERT INTO compute_nodes (service_host, name, vcpus, memory_mb, local_gb, cpu_info, hypervisor_type,
                                          hypervisor_version) VALUES (:host, :name, 8, 8192, 100, '', 'fake', 1)""",
            host=f"h{writer}",
            name=secrets.token_hex(4),
        )

    @rule(writer=st.sampled_from(range(WRITERS)), well=st.booleans())
    def ends(self, writer: int, well: bool) -> None:
        self.writers[writer].ends(well=well)

    @invariant()
    def it_is_what_a_query_shows(self) -> None:
        with self.reader.begin():
            assert told(take(self.roster, self.reader)) == told(asked_anew(self.reader))

    def teardown(self) -> None:
        for writer in self.writers:
            writer.ends(well=False)
            writer.conn.close()
        self.reader.close()


@pytest.fixture
def impatient(database: Engine) -> Iterator[Engine]:
    """An engine whose connections nobody else gets: what its writers set stays set."""
    engine = connect(database.url.render_as_string(hide_password=False), pool_size=20)
    yield engine
    engine.dispose()


def test_whatever_happens_it_is_what_a_query_shows(impatient: Engine) -> None:
    machine: Callable[[], Cloud] = type("ThisCloud", (Cloud,), {"engine": impatient})
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=length(6, 25),
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
