"""Rows of leases that no release can read, as an edit by hand leaves them."""

from uuid import UUID

from sqlalchemy import Engine, text

SPEC_IS_A_LIST = """UPDATE reservations SET spec = '["a", "list"]' WHERE lease_id = :lease_id"""
SPEC_IS_A_TEXT = """UPDATE reservations SET spec = '"a text"' WHERE lease_id = :lease_id"""
EVENT_OF_A_NEWER_RELEASE = "UPDATE events SET kind = 'praise_lease' WHERE lease_id = :lease_id AND kind = 'end_lease'"
PARTS_ARE_NO_PARTS = "UPDATE reservations SET parts = '[7]' WHERE lease_id = :lease_id"
PREEMPTIONS_ARE_AN_OBJECT = """UPDATE reservations SET preemptions = '{"a": 1}' WHERE lease_id = :lease_id"""
SUBLETS_ARE_AN_OBJECT = """UPDATE reservations SET sublets = '{"a": 1}' WHERE lease_id = :lease_id"""

DAMAGES = (
    SPEC_IS_A_LIST,
    SPEC_IS_A_TEXT,
    EVENT_OF_A_NEWER_RELEASE,
    PARTS_ARE_NO_PARTS,
    PREEMPTIONS_ARE_AN_OBJECT,
    SUBLETS_ARE_AN_OBJECT,
)


def spoil(engine: Engine, lease_id: UUID | str, damage: str = SPEC_IS_A_LIST) -> None:
    """Change a row of a lease, past the journal."""
    with engine.begin() as conn:
        assert conn.execute(text(damage), {"lease_id": UUID(str(lease_id))}).rowcount
