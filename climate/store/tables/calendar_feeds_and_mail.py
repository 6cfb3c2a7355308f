"""Tables of what users set for themselves: calendar feeds and mail."""

from sqlalchemy import ARRAY, Boolean, CheckConstraint, Column, Index, LargeBinary, Table, Text, Uuid

from climate.store.schema import Time, metadata

calendar_feeds = Table(
    "calendar_feeds",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("scope", Text, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    # SHA-256 of the secret: the database, its backups and its logs open no feed.
    Column("secret_hash", LargeBinary, nullable=False, unique=True),
    Column("created_at", Time, nullable=False),
    CheckConstraint("scope IN ('user', 'project')", name="scope_known"),
    Index("ix_calendar_feeds_owner", "user_id", "project_id", "id"),
)
"""Calendar feeds. A revoked one has no row. Not history, hence not in the journal."""

mail_preferences = Table(
    "mail_preferences",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("topics", ARRAY(Text), nullable=False),
    Column("updated_at", Time, nullable=False),
)
"""Topics about which users get mail; a user without a row gets none."""

mail_reminders = Table(
    "mail_reminders",
    metadata,
    Column("one_row", Boolean, CheckConstraint("one_row", name="one_row"), primary_key=True),
    Column("written_until", Time, nullable=False),
)
"""One row: all reminders that were due until then are written."""
