"""SQL scripts beside the migrations, one statement at a time."""

from pathlib import Path

from sqlalchemy import TextClause, text

VERSIONS = Path(__file__).parent / "versions"


def statements(name: str) -> list[TextClause]:
    """The statements of a script; each ends with a semicolon and a blank line."""
    script = (VERSIONS / name).read_text(encoding="utf-8")
    # A colon is SQL's here (casts), never a parameter.
    return [text(part.replace(":", "\\:")) for part in script.split(";\n\n") if part.strip()]
