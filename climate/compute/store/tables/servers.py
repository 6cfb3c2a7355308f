"""Tables of the bundled cloud beside those of its nodes. All names begin with compute_, all times are UTC."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, UUID

from climate.compute.store.columns import count, json, metadata, time, uuid

flavors = Table(
    "compute_flavors",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    count("vcpus"),
    count("ram_mb"),
    count("disk_gb"),
    count("ephemeral_gb"),
    count("swap_mb"),
    Column("is_public", Boolean, nullable=False),
    Column("projects", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    json("extra_specs"),
    Column("description", Text),
    CheckConstraint(
        "vcpus > 0 AND ram_mb > 0 AND disk_gb >= 0 AND ephemeral_gb >= 0 AND swap_mb >= 0", name="sizes_make_sense"
    ),
)

images = Table(
    "compute_images",
    metadata,
    uuid("id", key=True, made=True),
    Column("name", Text, nullable=False, index=True),
    Column("project_id", Text, index=True),
    Column("status", Text, nullable=False),
    Column("visibility", Text, nullable=False),
    Column("disk_format", Text),
    Column("container_format", Text),
    Column("size", BigInteger),
    Column("sha512", Text),
    json("properties"),
    Column("min_disk_gb", Integer, nullable=False, server_default="0"),
    Column("min_ram_mb", Integer, nullable=False, server_default="0"),
    Column("protected", Boolean, nullable=False, server_default=text("false")),
    Column("hidden", Boolean, nullable=False, server_default=text("false")),
    Column("tags", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    uuid("server_id"),
    time("created_at"),
    time("updated_at"),
    CheckConstraint("status IN ('queued', 'saving', 'uploading', 'active', 'deactivated', 'killed')", name="status"),
    CheckConstraint("visibility IN ('public', 'private', 'shared', 'community')", name="visibility"),
)

image_members = Table(
    "compute_image_members",
    metadata,
    Column("image_id", UUID(as_uuid=False), ForeignKey("compute_images.id", ondelete="CASCADE"), primary_key=True),
    Column("project_id", Text, primary_key=True, index=True),
    Column("status", Text, nullable=False),
    time("created_at"),
    time("updated_at"),
    CheckConstraint("status IN ('pending', 'accepted', 'rejected')", name="status"),
)

metadefs = Table(
    "compute_metadefs",
    metadata,
    Column("namespace", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("visibility", Text, nullable=False),
    Column("protected", Boolean, nullable=False, server_default=text("false")),
    Column("display_name", Text),
    Column("description", Text),
    json("parts"),
    time("created_at"),
    time("updated_at"),
    CheckConstraint("visibility IN ('public', 'private')", name="visibility"),
)
"""Namespaces of metadata definitions; `parts` has their objects, properties, tags and resource types by name."""

image_ids = Table("compute_image_ids", metadata, uuid("id", key=True))
"""The ids of all images that ever existed: an id is never used again."""

# A server has one image of a name and an occasion at most, so that a repeated snapshot finds the first one.
Index(
    "uq_compute_images_server_id_name_occasion",
    images.c.server_id,
    images.c.name,
    text("(properties ->> 'occasion')"),
    unique=True,
    postgresql_where=text("server_id IS NOT NULL AND status <> 'killed'"),
)

servers = Table(
    "compute_servers",
    metadata,
    uuid("id", key=True),
    Column("name", Text, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("task", Text),
    json("flavor"),
    Column("vcpus", Integer, nullable=False),
    Column("ram_mb", Integer, nullable=False),
    Column("disk_mb", BigInteger, nullable=False),
    uuid("image_id"),
    json("metadata"),
    json("hints"),
    Column("zone", Text),
    Column("key_name", Text),
    # Sent by a parent zone or the top cell, whose users have key pairs there; NULL: the user's key pair here.
    Column("public_key", Text),
    Column("user_data", Text),
    # Posted by the guest, which encrypts it with the public key.
    Column("guest_password", Text),
    Column("config_drive", Boolean, nullable=False, server_default=text("false")),
    Column("disk_config", Text, nullable=False, server_default="MANUAL"),
    Column("build_id", Text, nullable=False),
    Column("launch_index", Integer, nullable=False),
    Column("destination", Text),
    Column("access_ipv4", Text),
    Column("access_ipv6", Text),
    Column("description", Text),
    Column("group_id", UUID(as_uuid=False), ForeignKey("compute_server_groups.id", ondelete="SET NULL"), index=True),
    Column("locked_by", Text),
    Column("locked_reason", Text),
    Column("tags", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    # NULL: the group `default` of its project.
    Column("security_groups", ARRAY(UUID(as_uuid=False))),
    Column("old_flavor", JSONB(none_as_null=True)),
    Column("before", Text),
    uuid("shelved_image"),
    json("task_details"),
    Column("node_id", Integer, ForeignKey("compute_nodes.id"), index=True),
    Column("fault", JSONB(none_as_null=True)),
    uuid("task_image"),
    Column("tried", ARRAY(Integer), nullable=False, server_default=text("'{}'")),
    # The grant whose capacity it uses, by its flavor.
    Column("granted", Text),
    # The migration in progress, until it is confirmed or reverted.
    Column("migration_id", BigInteger, ForeignKey("compute_migrations.id")),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    Column("task_at", DateTime(timezone=True)),
    Column("rung_at", DateTime(timezone=True)),
    uuid("worker"),
    Column("worker_until", DateTime(timezone=True)),
    time("created_at"),
    time("updated_at"),
    time("launched_at", nullable=True),
    Index(None, "project_id", "created_at", "id"),
    Index(None, "build_id"),
    Index(None, "user_id"),
    Index("ix_compute_servers_under_way", "task_at", postgresql_where=text("task IS NOT NULL")),
    Index("ix_compute_servers_sleeping", "id", postgresql_where=text("status = 'RESERVED'")),
    Index("ix_compute_servers_granted", "granted", "node_id", postgresql_where=text("granted IS NOT NULL")),
    CheckConstraint(
        "status IN ('BUILD', 'RESERVED', 'ACTIVE', 'SHUTOFF', 'PAUSED', 'SUSPENDED', 'SHELVED_OFFLOADED', "
        "'VERIFY_RESIZE', 'RESCUE', 'ERROR')",
        name="status",
    ),
    CheckConstraint("status IN ('ERROR', 'SHELVED_OFFLOADED') OR node_id IS NOT NULL", name="placed_or_not_needed"),
    CheckConstraint("locked_by IN ('owner', 'admin')", name="locked_by"),
)

keypairs = Table(
    "compute_keypairs",
    metadata,
    Column("id", Integer, Identity(), nullable=False),
    Column("user_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("public_key", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    time("created_at"),
)

quotas = Table(
    "compute_quotas",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("instances", Integer),
    Column("cores", Integer),
    Column("ram_mb", Integer),
    Column("server_groups", Integer),
    Column("server_group_members", Integer),
    Column("key_pairs", Integer),
    Column("fixed_ips", Integer),
    Column("floating_ips", Integer),
    Column("ports", Integer),
    Column("networks", Integer),
)
"""Limits of projects; NULL: the limit of the class `default`, or the built-in one."""

quota_classes = Table(
    "compute_quota_classes",
    metadata,
    Column("name", Text, primary_key=True),
    json("limits"),
)

actions = Table(
    "compute_actions",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    uuid("server_id", nullable=False),
    Column("project_id", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("message", Text),
    time("started_at"),
    time("finished_at", nullable=True),
    Index(None, "server_id"),
)

server_usage = Table(
    "compute_server_usage",
    metadata,
    uuid("server_id", key=True),
    Column("project_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("flavor", Text, nullable=False),
    Column("vcpus", Integer, nullable=False),
    Column("ram_mb", Integer, nullable=False),
    Column("disk_mb", BigInteger, nullable=False),
    Column("started_at", DateTime(timezone=True), nullable=False),
    time("ended_at"),
    Index(None, "project_id", "ended_at"),
    Index(None, "ended_at"),
)
"""Deleted servers that ran, with the flavor that they had at the end."""

server_groups = Table(
    "compute_server_groups",
    metadata,
    uuid("id", key=True, made=True),
    Column("name", Text, nullable=False),
    Column("project_id", Text, nullable=False, index=True),
    Column("user_id", Text, nullable=False),
    Column("policy", Text, nullable=False),
    json("rules"),
    time("created_at"),
    CheckConstraint("policy IN ('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity')", name="policy"),
)

decisions = Table(
    "compute_decisions",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("build_id", Text, nullable=False, index=True),
    uuid("server_id"),
    time("made_at"),
    json("body"),
    Index(None, "server_id"),
)
"""Decisions of the scheduler with their reasons. `server_id` NULL: for all servers of the build."""
