"""Tables of VPNs: the certificate authority of each project, and the certificates of its users."""

from sqlalchemy import Column, DateTime, ForeignKey, Table, Text

from climate.compute.store.columns import metadata, time

authorities = Table(
    "compute_vpn_authorities",
    metadata,
    Column("project_id", Text, primary_key=True),
    Column("certificate", Text, nullable=False),
    Column("sealed_key", Text, nullable=False),
    Column("server_certificate", Text, nullable=False),
    Column("sealed_server_key", Text, nullable=False),
    time("created_at"),
)

certificates = Table(
    "compute_vpn_certificates",
    metadata,
    Column("serial", Text, primary_key=True),
    Column(
        "project_id",
        Text,
        ForeignKey("compute_vpn_authorities.project_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    ),
    Column("user_id", Text, nullable=False),
    Column("name", Text, nullable=False),
    time("created_at"),
    Column("expires_at", DateTime(timezone=True), nullable=False),
    time("revoked_at", nullable=True),
)
