"""Mail: a further audience of notices, the preferences of users, and the time until which reminders are written."""

from migrations.scripts import alone, build_indexes

revision = "0055"
down_revision = "0054"


def upgrade() -> None:
    alone("0055_mail.sql")
    build_indexes("0055_mail_indexes.sql")
