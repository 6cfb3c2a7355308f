"""Tables of archives: files with leases that were deleted long ago, and the position of each lease."""

from sqlalchemy import BigInteger, CheckConstraint, Column, ForeignKey, Identity, Integer, Table, Text, Uuid

from climate.store.schema import Time, metadata

archives = Table(
    "archives",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    # writing: the file may be incomplete; written: it is complete, and rows may be deleted; done: they are deleted.
    Column("state", Text, nullable=False),
    Column("older_than", Time, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("leases", Integer, nullable=False, server_default="0"),
    Column("facts", BigInteger, nullable=False, server_default="0"),
    Column("size", BigInteger, nullable=False, server_default="0"),
    Column("sha256", Text, nullable=False, server_default=""),
    CheckConstraint("state IN ('writing', 'written', 'done')", name="state_known"),
)

archived_leases = Table(
    "archived_leases",
    metadata,
    Column("lease_id", Uuid, primary_key=True),
    Column("archive", ForeignKey("archives.id"), nullable=False, index=True),
    # Offset and length of its block in the file.
    Column("place", BigInteger, nullable=False),
    Column("size", Integer, nullable=False),
    # Number of its facts in the file.
    Column("version", Integer, nullable=False),
)

# Complements the trigger that refuses any other change. A fact may be deleted only if a complete archive contains it,
# and the statement names that archive.
ARCHIVED_FACTS_MAY_GO = (
    """
    CREATE FUNCTION journal_keeps_what_is_not_archived() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN
        IF EXISTS (
            SELECT FROM deleted d WHERE NOT EXISTS (
                SELECT FROM archived_leases l JOIN archives a ON a.id = l.archive
                WHERE l.lease_id = d.stream AND d.version <= l.version AND a.state = ''written''
                AND a.id::text = current_setting(''climate.archive'', true)))
        THEN RAISE EXCEPTION ''the journal is append-only: not all of these facts are archived''; END IF;
        RETURN NULL;
    END'
    """,
    """
    CREATE TRIGGER journal_keeps_what_is_not_archived AFTER DELETE ON journal REFERENCING OLD TABLE AS deleted
    FOR EACH STATEMENT EXECUTE FUNCTION journal_keeps_what_is_not_archived()
    """,
)
