"""Tables of domains, users, projects, groups, roles, credentials and revocations."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, TIMESTAMP

from climate.database.transaction_ids import changed

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
Time = TIMESTAMP(timezone=True)
NOW = text("clock_timestamp()")

domains = Table(
    "identity_domains",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("extra", JSONB, nullable=False, server_default="{}"),
    Index("uq_identity_domains_name", text("lower(name)"), unique=True),
)
"""Domains besides the default one, which has no row: rows of other tables without a domain are in it."""


def _domain_id() -> Column[str]:
    return Column("domain_id", ForeignKey("identity_domains.id"))


def _one_name_per_domain(table: str) -> tuple[Index, Index]:
    """Return an index of names, which are taken once in a domain, and one of domains."""
    name = f"uq_identity_{table}_name_domain_id"
    unique = Index(name, "name", "domain_id", unique=True, postgresql_nulls_not_distinct=True)
    return unique, Index(f"ix_identity_{table}_domain_id", "domain_id")


projects = Table(
    "identity_projects",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("parent_id", ForeignKey("identity_projects.id")),
    Column("tags", ARRAY(Text), nullable=False, server_default="{}"),
    Column("extra", JSONB, nullable=False, server_default="{}"),
    _domain_id(),
    Index("ix_identity_projects_parent_id", "parent_id"),
    *_one_name_per_domain("projects"),
)

users = Table(
    "identity_users",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("email", Text),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("password_hash", Text),
    Column("default_project_id", ForeignKey("identity_projects.id", ondelete="SET NULL")),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("extra", JSONB, nullable=False, server_default="{}"),
    _domain_id(),
    *_one_name_per_domain("users"),
)

groups = Table(
    "identity_groups",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("created_at", Time, nullable=False, server_default=NOW),
    Column("extra", JSONB, nullable=False, server_default="{}"),
    _domain_id(),
    *_one_name_per_domain("groups"),
)

group_members = Table(
    "identity_group_members",
    metadata,
    Column("group_id", ForeignKey("identity_groups.id", ondelete="CASCADE"), primary_key=True),
    Column("user_id", ForeignKey("identity_users.id", ondelete="CASCADE"), primary_key=True),
    Index("ix_identity_group_members_user_id", "user_id"),
)

roles = Table(
    "identity_roles",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("created_at", Time, nullable=False, server_default=NOW),
    _domain_id(),
    Index(
        "uq_identity_roles_name_domain_id",
        text("lower(name)"),
        "domain_id",
        unique=True,
        postgresql_nulls_not_distinct=True,
    ),
    Index("ix_identity_roles_domain_id", "domain_id"),
)
"""Roles besides the default ones, which have no rows. Those without a domain are for all."""

role_implications = Table(
    "identity_role_implications",
    metadata,
    Column("prior", Text, primary_key=True),
    Column("implied", Text, primary_key=True),
    Index("ix_identity_role_implications_implied", "implied"),
)
"""Roles that those who have a role, by default or assigned, have too. Rules among default roles are not rows."""

role_assignments = Table(
    "identity_role_assignments",
    metadata,
    Column("user_id", ForeignKey("identity_users.id", ondelete="CASCADE"), primary_key=True),
    Column("project_id", ForeignKey("identity_projects.id", ondelete="CASCADE"), primary_key=True),
    Column("role", Text, primary_key=True),
    Index("ix_identity_role_assignments_project_id", "project_id"),
)

system_roles = Table(
    "identity_system_roles",
    metadata,
    Column("user_id", ForeignKey("identity_users.id", ondelete="CASCADE"), primary_key=True),
    Column("role", Text, primary_key=True),
)
"""Roles of users in the whole system."""

group_assignments = Table(
    "identity_group_assignments",
    metadata,
    Column("group_id", ForeignKey("identity_groups.id", ondelete="CASCADE"), primary_key=True),
    Column("project_id", ForeignKey("identity_projects.id", ondelete="CASCADE"), primary_key=True),
    Column("role", Text, primary_key=True),
    Index("ix_identity_group_assignments_project_id", "project_id"),
)
"""Roles of groups in projects, which all members of a group have."""

group_system_roles = Table(
    "identity_group_system_roles",
    metadata,
    Column("group_id", ForeignKey("identity_groups.id", ondelete="CASCADE"), primary_key=True),
    Column("role", Text, primary_key=True),
)
"""Roles of groups in the whole system."""

application_credentials = Table(
    "identity_application_credentials",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("user_id", ForeignKey("identity_users.id", ondelete="CASCADE"), nullable=False),
    Column("project_id", ForeignKey("identity_projects.id", ondelete="CASCADE"), nullable=False),
    Column("secret_hash", Text, nullable=False),
    Column("roles", JSONB, nullable=False),
    Column("description", Text, nullable=False, server_default=""),
    Column("unrestricted", Boolean, nullable=False),
    Column("expires_at", Time),
    Column("created_at", Time, nullable=False, server_default=NOW),
    UniqueConstraint("user_id", "name"),
)

revocations = Table(
    "identity_revocations",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("issued_before", Time, nullable=False, server_default=NOW),
    Column("expires_at", Time, nullable=False, index=True),
    Column("owner", Text, index=True),
    changed(),
    CheckConstraint("kind IN ('token', 'user', 'project', 'credential', 'role')", name="kind_known"),
)
"""Tokens that name the subject and were issued before that time are refused; rows are kept until they expire.

`owner` is the user whose token or credential the subject is.
"""

failures = Table(
    "identity_failures",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("login", Text, nullable=False),
    Column("address", Text, nullable=False),
    Column("at", Time, nullable=False, server_default=NOW),
    Index("ix_identity_failures_address_at", "address", "at"),
    Index("ix_identity_failures_login_at", "login", "at"),
    Index("ix_identity_failures_at", "at"),
)
"""Failed sign-in attempts, kept for some minutes."""
