"""Tables of leases, their events and allocations, and the journal, with their constraints."""

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKey,
    FromClause,
    Identity,
    Index,
    Integer,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    and_,
    event,
    literal_column,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TSTZRANGE, ExcludeConstraint

from climate.domain.status import EventKind
from climate.store.schema import Time, metadata
from climate.store.tables import archives

journal_position = Sequence("journal_position", metadata=metadata)
fence_seq = Sequence("fence_seq", metadata=metadata)

AUDITED_KINDS = (
    *("HostDescribed", "HostEnrolled", "HostOpened", "HostPowerCleared", "HostPowerSet", "HostRemoved"),
    *("LimitsSet", "ObjectChanged", "PoolTermsSet", "WindowChanged", "WindowClosed", "WindowPlanned"),
)
"""Kinds of facts in the audit trail. A new one needs a migration that rebuilds their indexes."""

AUDITED = f"journal.kind IN ({', '.join(repr(kind) for kind in AUDITED_KINDS)})"

journal = Table(
    "journal",
    metadata,
    Column("stream", Uuid, primary_key=True),
    Column("version", Integer, primary_key=True),
    Column("position", BigInteger, server_default=journal_position.next_value(), nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("body", JSONB, nullable=False),
    Column("actor", JSONB, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("recorded_at", Time, server_default=text("clock_timestamp()"), nullable=False),
    Index("ix_journal_audited", "position", postgresql_where=text(AUDITED)),
    Index("ix_journal_audited_author", text("(actor ->> 'user_id')"), "position", postgresql_where=text(AUDITED)),
)

SHARED = "sharing <> '{}'"
"""Condition for leases that name further projects or users."""

OWING = """parent @> '{"returned": false}'"""
"""Condition for sub-leases that have not returned their hosts."""

leases = Table(
    "leases",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("name", Text, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("start_date", Time, nullable=False),
    Column("end_date", Time, nullable=False),
    Column("status", Text, nullable=False),
    Column("degraded", Boolean, nullable=False),
    Column("deleting", Boolean, nullable=False),
    Column("gone", Boolean, nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("updated_at", Time),
    # End of its time in the waiting list; NULL for a lease that has its resources, or is gone.
    Column("wait_until", Time),
    Column("series_id", Uuid),
    # Further projects and users by kind; empty for a lease that is not shared.
    Column("sharing", JSONB, nullable=False, server_default="{}"),
    # Lease of which a sub-lease has its hosts; NULL for other leases.
    Column("parent", JSONB(none_as_null=True)),
    CheckConstraint("start_date < end_date", name="ends_after_start"),
    Index(
        "ix_leases_shared",
        "sharing",
        postgresql_using="gin",
        postgresql_ops={"sharing": "jsonb_path_ops"},
        postgresql_where=text(SHARED),
    ),
    Index("ix_leases_of_parent", text("(parent ->> 'lease_id')"), postgresql_where=text("parent IS NOT NULL")),
    Index("ix_leases_owing", "id", postgresql_where=text(OWING)),
    Index("ix_leases_waiting", "created_at", "id", postgresql_where=text("wait_until IS NOT NULL")),
    Index("ix_leases_series", "series_id", postgresql_where=text("series_id IS NOT NULL")),
    Index("ix_leases_listed", "created_at", "id", postgresql_where=text("NOT gone")),
    Index("ix_leases_project_listed", "project_id", "created_at", "id", postgresql_where=text("NOT gone")),
    # Lists by one condition, in the order in which they are shown.
    Index("ix_leases_status_listed", "status", "created_at", "id", postgresql_where=text("NOT gone")),
    Index(
        "ix_leases_project_status_listed", "project_id", "status", "created_at", "id", postgresql_where=text("NOT gone")
    ),
    Index("ix_leases_name_listed", "name", "created_at", "id", postgresql_where=text("NOT gone")),
    Index("ix_leases_end", "end_date", postgresql_where=text("NOT gone")),
    # Calendars show the leases of a project in a window of days, deleted ones among them.
    Index("ix_leases_project_end", "project_id", "end_date"),
    # Usage of a project is read from ended leases, too.
    Index("ix_leases_project_gone", "project_id", "end_date", postgresql_where=text("gone")),
    # Candidates for the next archive.
    Index("ix_leases_gone", "updated_at", "id", postgresql_where=text("gone")),
    Index(
        "ix_leases_project_terminated",
        "project_id",
        "end_date",
        postgresql_where=text("NOT gone AND status = 'TERMINATED'"),
    ),
)

waiting_marks = Table(
    "waiting_marks",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    # Resources that were released for that time. NULL: the whole waiting list is tried, or one lease of it. With a
    # lease: its promised period, which counts until it begins.
    Column("during", TSTZRANGE),
    Column("lease_id", Uuid, index=True),
    Column("not_before", Time),
)
"""Reasons to try leases of the waiting list. Not history, hence not in the journal."""

LACKING = "missing > 0 AND status <> 'deleted'"
"""Condition for reservations in force that lack resources."""

PREEMPTED = "preemptions <> '[]' AND status <> 'deleted'"
"""Condition for reservations in force from which a host is to be taken."""

SUBLET = "sublets <> '[]'"
"""Condition for reservations of which sub-leases have, or will have, hosts."""

reservations = Table(
    "reservations",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("lease_id", ForeignKey("leases.id"), nullable=False, index=True),
    Column("position", SmallInteger, nullable=False),
    Column("resource_type", Text, nullable=False),
    Column("resource_id", Text, index=True),
    Column("status", Text, nullable=False),
    Column("spec", JSONB, nullable=False),
    Column("exists_before_start", Boolean, nullable=False),
    Column("missing", Integer, nullable=False, server_default="0"),
    Column("resources_changed", Boolean, nullable=False),
    # Shares in child zones and cells.
    Column("parts", JSONB, nullable=False, server_default="[]"),
    # Plans to take hosts from it, if it is preemptible.
    Column("preemptions", JSONB, nullable=False, server_default="[]"),
    # Hosts of it that are promised to sub-leases.
    Column("sublets", JSONB, nullable=False, server_default="[]"),
    Index("ix_reservations_sublet", "lease_id", postgresql_where=text(SUBLET)),
    Index("ix_reservations_preempted", "lease_id", postgresql_where=text(PREEMPTED)),
    Index("ix_reservations_lacking", "lease_id", postgresql_where=text(LACKING)),
)

GIVES_BACK = "kind IN ('end_lease', 'expire_hold')"
"""Condition for events that release resources for which others wait."""

events = Table(
    "events",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("lease_id", ForeignKey("leases.id"), nullable=False),
    Column("seq", SmallInteger, nullable=False),
    Column("kind", Text, nullable=False),
    Column("due_at", Time, nullable=False),
    Column("run_at", Time, nullable=False),
    Column("status", Text, nullable=False),
    Column("outcome", Text),
    Column("reason", Text),
    Column("attempts", Integer, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("first_claimed_at", Time),
    Column("updated_at", Time),
    Column("name", Text, nullable=False, server_default=""),
    # Progress of the event by resource type, for a lease with several.
    Column("shares", JSONB, nullable=False, server_default="[]"),
    # Project of its lease, because projects take turns; a lease never changes its project.
    Column("project_id", Text, nullable=False, server_default=""),
    CheckConstraint("status IN ('UNDONE', 'IN_PROGRESS', 'DONE', 'ERROR')", name="status_known"),
    CheckConstraint("status <> 'IN_PROGRESS' OR token > 0", name="claimed_with_token"),
    Index(
        "uq_events_lease_id_kind",
        "lease_id",
        "kind",
        text("(CASE WHEN kind = 'additional' THEN CAST(id AS text) ELSE '' END)"),
        unique=True,
    ),
    Index("uq_events_one_in_progress", "lease_id", unique=True, postgresql_where=text("status = 'IN_PROGRESS'")),
    Index("ix_events_undone", "run_at", "id", postgresql_where=text("status = 'UNDONE'")),
    Index(
        "ix_events_undone_ends",
        "project_id",
        "run_at",
        postgresql_where=text(f"status = 'UNDONE' AND {GIVES_BACK}"),
    ),
    Index(
        "ix_events_undone_others",
        "project_id",
        "run_at",
        postgresql_where=text(f"status = 'UNDONE' AND NOT ({GIVES_BACK})"),
    ),
    # Lists in the order in which they are shown: of all, and of those of one open status.
    Index("ix_events_listed", "due_at", "id"),
    Index("ix_events_open_listed", "status", "due_at", "id", postgresql_where=text("status <> 'DONE'")),
    Index("ix_events_failed", "updated_at", postgresql_where=text("status = 'ERROR'")),
)

leases_set_aside = Table(
    "leases_set_aside",
    metadata,
    Column("lease_id", ForeignKey("leases.id"), primary_key=True),
    Column("since", Time, nullable=False),
    Column("reason", Text, nullable=False),
)
"""Leases whose rows cannot be read or written; pollers skip them. Not history, hence not in the journal."""

claims = Table(
    "claims",
    metadata,
    # An event of a lease with several resource types has several rows: a share each, with its own token.
    Column("event_id", ForeignKey("events.id"), primary_key=True),
    Column("token", BigInteger, primary_key=True, autoincrement=False),
    Column("queue", Text, nullable=False),
    Column("claimed_by", Text, nullable=False),
    Column("claimed_at", Time, nullable=False),
    # Earliest time of the next message for a share that was put back while others are under way.
    Column("not_before", Time),
    Column("dispatched_at", Time),
    Column("dispatches", Integer, nullable=False, server_default="0"),
    Column("started_at", Time),
    Column("worker", Text),
    Column("live_until", Time),
    Column("step_deadline", Time),
    # Heartbeats change only columns outside every index, so they stay on their page (HOT updates).
    postgresql_with={"fillfactor": 70},
)
"""Running state of an event IN_PROGRESS: its worker and heartbeats. Not history, hence not in the journal."""

actions = Table(
    "actions",
    metadata,
    Column("event_id", ForeignKey("events.id"), primary_key=True),
    Column("due_at", Time, primary_key=True),
    Column("step", Text, primary_key=True),
    Column("token", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    CheckConstraint("state IN ('PLANNED', 'DONE')", name="state_known"),
)
"""Cloud actions of an event: PLANNED before, DONE after; a repeated run continues after the last one."""

IN_FORCE = "state IN ('held', 'active')"
GIVES_WAY = f"{IN_FORCE} AND preemptible"
"""Condition for allocations in force that give way to ordinary leases."""

allocations = Table(
    "allocations",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("reservation_id", ForeignKey("reservations.id")),
    Column("host", ForeignKey("hosts.id"), nullable=False),
    Column("during", TSTZRANGE, nullable=False),
    Column("kind", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("window_id", ForeignKey("maintenance_windows.id"), index=True),
    # Slots on a shared host, and the resources that they take together.
    Column("slots", Integer, nullable=False, server_default="0"),
    Column("vcpus", BigInteger, nullable=False, server_default="0"),
    Column("memory_mb", BigInteger, nullable=False, server_default="0"),
    Column("disk_gb", BigInteger, nullable=False, server_default="0"),
    # Whether the host may be taken when an ordinary lease needs it. The guard below knows no difference: the allocation
    # is shortened before the other one is written.
    Column("preemptible", Boolean, nullable=False, server_default="false"),
    CheckConstraint("kind IN ('lease', 'maintenance', 'cleaning', 'hold')", name="kind_known"),
    CheckConstraint("state IN ('held', 'active', 'released')", name="state_known"),
    CheckConstraint("kind <> 'lease' OR reservation_id IS NOT NULL", name="lease_has_reservation"),
    CheckConstraint("kind <> 'maintenance' OR window_id IS NOT NULL", name="maintenance_has_window"),
    CheckConstraint("slots >= 0 AND vcpus >= 0 AND memory_mb >= 0 AND disk_gb >= 0", name="no_less_than_nothing"),
    # An empty range overlaps nothing and an unbounded one everything; the guard below admits neither.
    CheckConstraint(
        "NOT isempty(during) AND lower_inc(during) AND NOT upper_inc(during)"
        " AND NOT lower_inf(during) AND NOT upper_inf(during)"
        " AND lower(during) >= '2000-01-01 00:00+00' AND upper(during) < '2200-01-01 00:00+00'",
        name="during_is_bounded",
    ),
    # Needs no extension, because a host number is a range of one. A lease of the whole host takes every lane of it;
    # leases that share it have a lane each.
    ExcludeConstraint(
        (text("int8range(host, host, '[]')"), "&&"),
        ("during", "&&"),
        (text("(CASE WHEN slots > 0 THEN int8range(id, id, '[]') ELSE '(,)'::int8range END)"), "&&"),
        name="one_holder_at_a_time",
        where=text(IN_FORCE),
    ),
    UniqueConstraint("reservation_id", "host"),
    # The search has an index of its own, because the constraint's index is 60 to 170 times slower for it. It includes
    # the host, so that a search reads no rows of allocations.
    Index(
        "ix_allocations_during",
        "during",
        postgresql_using="gist",
        postgresql_include=["host"],
        postgresql_where=text(IN_FORCE),
    ),
    Index("ix_allocations_host_start", "host", text("lower(during)"), postgresql_where=text(IN_FORCE)),
    Index("ix_allocations_preemptible", "during", postgresql_using="gist", postgresql_where=text(GIVES_WAY)),
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("user_id", Text, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("fingerprint", Text, nullable=False),
    Column("resource_id", Text, nullable=False),
    Column("created_at", Time, nullable=False, index=True),
)

lease_fences = Table(
    "lease_fences",
    metadata,
    # Number of the last message of the parent cell that created the lease.
    Column("lease_id", Uuid, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("passed_at", Time, nullable=False, index=True),
)

lease_pools = Table(
    "lease_pools",
    metadata,
    Column("reservation_id", Uuid, primary_key=True),
    Column("aggregate_id", BigInteger, nullable=False),
)
"""Aggregates of reservations' pools in the cloud. Not history, hence not in the journal."""

healing_waits = Table(
    "healing_waits",
    metadata,
    Column("lease_id", ForeignKey("leases.id"), primary_key=True),
    Column("tries", Integer, nullable=False),
    Column("tried_at", Time, nullable=False),
    # Time of the last try if resources were released since then.
    Column("next_at", Time, nullable=False),
    Index("ix_healing_waits_tried_at", "tried_at"),
)
"""Failed tries of healing. Not history, hence not in the journal."""

epochs = Table(
    "epochs",
    metadata,
    Column("one_row", Boolean, CheckConstraint("one_row", name="one_row"), primary_key=True),
    Column("epoch", Integer, nullable=False),
)
"""One row. Raised by hand after a restore from backup, so that tokens stay above all former ones."""

JOURNAL_IS_APPEND_ONLY = (
    """
    CREATE FUNCTION journal_is_append_only() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN
        IF TG_OP = ''DELETE'' AND current_setting(''climate.archive'', true) <> '''' THEN RETURN NULL; END IF;
        RAISE EXCEPTION ''the journal is append-only'';
    END'
    """,
    """
    CREATE TRIGGER journal_is_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON journal
    FOR EACH STATEMENT EXECUTE FUNCTION journal_is_append_only()
    """,
)
FIRST_EPOCH = "INSERT INTO epochs (one_row, epoch) VALUES (true, 1)"

HOST_IS_FREE = """
    CREATE OR REPLACE FUNCTION host_is_free(number BIGINT, wanted TSTZRANGE) RETURNS boolean
    LANGUAGE plpgsql VOLATILE STRICT AS
    'BEGIN
        RETURN NOT EXISTS (
            SELECT FROM allocations
            WHERE int8range(host, host, ''[]'') && int8range(number, number, ''[]'') AND during && wanted
                AND state IN (''held'', ''active''));
    END'
"""
"""A volatile function reads in a snapshot of its own, which is taken when it is called: climate.store.allocation."""

for statement in (*JOURNAL_IS_APPEND_ONLY, *archives.ARCHIVED_FACTS_MAY_GO):
    event.listen(journal, "after_create", DDL(statement))  # type: ignore[no-untyped-call]
event.listen(allocations, "after_create", DDL(HOST_IS_FREE))  # type: ignore[no-untyped-call]
event.listen(epochs, "after_create", DDL(FIRST_EPOCH))  # type: ignore[no-untyped-call]


def has(column: ColumnElement[str], *values: str) -> ColumnElement[bool]:
    """Return the condition that the column has one of these literal values.

    Plans are made without looking at bound values (climate.store.engine), and a partial index is only used if its
    condition is literal.
    """
    spelled = [literal_column(f"'{value}'", Text) for value in values]
    return column == spelled[0] if len(spelled) == 1 else column.in_(spelled)


def in_force(rows: FromClause) -> ColumnElement[bool]:
    """Return the condition that the allocations `rows` are held or active."""
    return has(rows.c.state, "held", "active")


def shared_with(*, project_id: str | None = None, user_id: str | None = None) -> ColumnElement[bool]:
    """Return the condition that a lease is shared with this project or with this user."""
    named = {"projects": project_id, "viewers": user_id, "extenders": user_id}
    some = [leases.c.sharing.contains({kind: [one]}) for kind, one in named.items() if one is not None]
    return and_(literal_column(f"leases.{SHARED}", Boolean), or_(*some))


def behind_no_wait() -> ColumnElement[bool]:
    """Return the condition that no wait of its lease delays an event: it ends the wait, or the lease does not wait."""
    in_line = select(leases.c.id).where(leases.c.wait_until.is_not(None))
    return has(events.c.kind, EventKind.WAIT_OVER) | events.c.lease_id.not_in(in_line)
