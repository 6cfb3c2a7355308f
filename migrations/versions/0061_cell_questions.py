"""Questions to other cells that are sent again until they are answered."""

from migrations.scripts import alone

revision = "0061"
down_revision = "0060"


def upgrade() -> None:
    alone("0061_cell_questions.sql")
