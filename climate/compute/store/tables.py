"""Tables of the bundled cloud.  All names begin with compute_, all times are UTC."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, INET, JSONB, UUID

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _uuid(
    name: str, *, made: bool = False, key: bool = False, nullable: bool = True, unique: bool = False
) -> Column[str]:
    return Column(
        name,
        UUID(as_uuid=False),
        primary_key=key,
        nullable=nullable and not key,
        unique=unique or None,
        server_default=func.gen_random_uuid() if made else None,
    )


def _time(name: str, *, nullable: bool = False) -> Column[object]:
    return Column(
        name, DateTime(timezone=True), nullable=nullable, server_default=None if nullable else func.clock_timestamp()
    )


def _json(name: str) -> Column[object]:
    return Column(name, JSONB, nullable=False, server_default=text("'{}'::jsonb"))


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False)


def _taken(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


services = Table(
    "compute_services",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    _uuid("uuid", made=True, nullable=False, unique=True),
    Column("host", Text, nullable=False, unique=True),
    Column("enabled", Boolean, nullable=False, server_default=text("true")),
    Column("disabled_reason", Text),
    _time("beat_at"),
    _time("created_at"),
)

aggregates = Table(
    "compute_aggregates",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    _uuid("uuid", made=True, nullable=False),
    Column("name", Text, nullable=False, unique=True),
    _json("metadata"),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    _time("created_at"),
    _time("updated_at"),
)

nodes = Table(
    "compute_nodes",
    metadata,
    Column("id", Integer, Identity(), primary_key=True),
    _uuid("uuid", made=True, nullable=False, unique=True),
    Column("service_host", Text, ForeignKey("compute_services.host"), nullable=False),
    Column("name", Text, nullable=False),
    _count("vcpus"),
    _count("memory_mb"),
    _count("local_gb"),
    Column("cpu_info", Text, nullable=False),
    Column("hypervisor_type", Text, nullable=False),
    Column("hypervisor_version", Integer, nullable=False),
    Column("zone", Text),
    Column("present", Boolean, nullable=False, server_default=text("true")),
    # A node is in one pool at most: a column, so that nothing else can be.
    Column("pool", Text, ForeignKey("compute_aggregates.name"), index=True),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    _taken("used_vcpus"),
    _taken("used_ram_mb"),
    _taken("used_disk_mb"),
    Column("ram_ratio", Float, nullable=False, server_default="1.5"),
    Column("cpu_ratio", Float, nullable=False, server_default="16.0"),
    Column("disk_ratio", Float, nullable=False, server_default="1.0"),
    UniqueConstraint("name", "service_host"),
    CheckConstraint("used_vcpus >= 0 AND used_ram_mb >= 0 AND used_disk_mb >= 0", name="never_below_zero"),
)

flavors = Table(
    "compute_flavors",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    _count("vcpus"),
    _count("ram_mb"),
    _count("disk_gb"),
    _count("ephemeral_gb"),
    _count("swap_mb"),
    Column("is_public", Boolean, nullable=False),
    Column("projects", ARRAY(Text), nullable=False, server_default=text("'{}'")),
    _json("extra_specs"),
    Column("description", Text),
    CheckConstraint(
        "vcpus > 0 AND ram_mb > 0 AND disk_gb >= 0 AND ephemeral_gb >= 0 AND swap_mb >= 0", name="sizes_make_sense"
    ),
)

images = Table(
    "compute_images",
    metadata,
    _uuid("id", key=True, made=True),
    Column("name", Text, nullable=False, index=True),
    Column("project_id", Text, index=True),
    Column("status", Text, nullable=False),
    Column("visibility", Text, nullable=False),
    Column("disk_format", Text),
    Column("container_format", Text),
    Column("size", BigInteger),
    Column("sha512", Text),
    _json("properties"),
    _uuid("server_id"),
    _time("created_at"),
    _time("updated_at"),
    CheckConstraint("status IN ('queued', 'saving', 'active', 'killed')", name="status"),
    CheckConstraint("visibility IN ('public', 'private', 'shared', 'community')", name="visibility"),
)

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
    _uuid("id", key=True),
    Column("name", Text, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("task", Text),
    _json("flavor"),
    Column("vcpus", Integer, nullable=False),
    Column("ram_mb", Integer, nullable=False),
    Column("disk_mb", BigInteger, nullable=False),
    _uuid("image_id"),
    _json("metadata"),
    _json("hints"),
    Column("zone", Text),
    Column("key_name", Text),
    Column("user_data", Text),
    Column("build_id", Text, nullable=False),
    Column("launch_index", Integer, nullable=False),
    Column("node_id", Integer, ForeignKey("compute_nodes.id"), index=True),
    Column("fault", JSONB(none_as_null=True)),
    _uuid("task_image"),
    Column("tried", ARRAY(Integer), nullable=False, server_default=text("'{}'")),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    Column("task_at", DateTime(timezone=True)),
    Column("rung_at", DateTime(timezone=True)),
    _uuid("worker"),
    Column("worker_until", DateTime(timezone=True)),
    _time("created_at"),
    _time("updated_at"),
    _time("launched_at", nullable=True),
    Index(None, "project_id", "created_at", "id"),
    Index("ix_compute_servers_under_way", "task_at", postgresql_where=text("task IS NOT NULL")),
    Index("ix_compute_servers_sleeping", "id", postgresql_where=text("status = 'RESERVED'")),
    CheckConstraint(
        "status IN ('BUILD', 'RESERVED', 'ACTIVE', 'SHUTOFF', 'SUSPENDED', 'ERROR')",
        name="status",
    ),
    CheckConstraint("status = 'ERROR' OR node_id IS NOT NULL", name="placed_or_error"),
)

networks = Table(
    "compute_networks",
    metadata,
    _uuid("id", key=True, made=True),
    _uuid("subnet_id", made=True, nullable=False),
    Column("label", Text, nullable=False, unique=True),
    Column("cidr", Text, nullable=False),
    Column("gateway", Text, nullable=False),
    _time("created_at"),
)

addresses = Table(
    "compute_addresses",
    metadata,
    Column("network_id", UUID(as_uuid=False), ForeignKey("compute_networks.id"), primary_key=True),
    Column("address", INET, primary_key=True),
    _uuid("port_id", made=True, nullable=False),
    Column("mac", Text, nullable=False),
    Column("server_id", UUID(as_uuid=False), ForeignKey("compute_servers.id", ondelete="SET NULL"), index=True),
)

Index(
    "ix_compute_addresses_free",
    addresses.c.network_id,
    addresses.c.address,
    postgresql_where=addresses.c.server_id.is_(None),
)

keypairs = Table(
    "compute_keypairs",
    metadata,
    Column("user_id", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("public_key", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    _time("created_at"),
)

quotas = Table(
    "compute_quotas",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("instances", Integer, nullable=False, server_default="50"),
    Column("cores", Integer, nullable=False, server_default="200"),
    Column("ram_mb", Integer, nullable=False, server_default="512000"),
)

actions = Table(
    "compute_actions",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    _uuid("server_id", nullable=False),
    Column("project_id", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("request_id", Text, nullable=False),
    Column("user_id", Text, nullable=False),
    Column("message", Text),
    _time("started_at"),
    Index(None, "server_id"),
)
