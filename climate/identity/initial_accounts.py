"""First start: an administrator, a demonstration project, and the clients' clouds.yaml."""

from collections.abc import Callable
from pathlib import Path
from secrets import choice
from string import ascii_letters, digits
from uuid import uuid4

from sqlalchemy import Connection

from climate.domain.policy import ADMIN, MEMBER
from climate.file_errors import reason_of
from climate.identity import audit_trail, clouds_yaml, private_files
from climate.identity.audit_trail import SETUP
from climate.identity.context import Identity
from climate.identity.models import NameOrId, Project, User
from climate.identity.store import assignments, locks, projects, users
from climate.identity.store.assignments import Holder
from climate.settings import SettingError, Settings

USERS = {"admin": ADMIN, "demo": MEMBER}
"""Maps a user, and the project of the same name, to its role there."""

Echo = Callable[[str], None]


def first_start(identity: Identity, settings: Settings, echo: Echo) -> None:
    """Create the missing ones of users `admin` and `demo`, their projects, and `<home>/clouds.yaml`; idempotent.

    A generated password is written to `<home>/<user>-password` (0600); the administrator's is shown once through
    `echo`.
    """
    settings.home.mkdir(parents=True, exist_ok=True)
    identity.keys.fernet()
    with identity.engine.begin() as conn:
        locks.one_first_start(conn)
        new = {name: _ensure(identity, conn, settings.home, name, role) for name, role in USERS.items()}
    known = {name: clouds_yaml.InitialPassword(kept_password(settings.home, name), new[name]) for name in USERS}
    if new["admin"]:
        kept_in = password_file(settings.home, "admin")
        echo(f"The password of user admin is {known['admin'].password}  (kept in {kept_in})")
    clouds_yaml.write(settings.home / "clouds.yaml", settings.base_url, known, echo)


def _ensure(identity: Identity, conn: Connection, home: Path, name: str, role: str) -> bool:
    """Create a project and a user of that name with that role; return whether the user is new."""
    project = projects.find(conn, NameOrId(name=name))
    if project is None:
        project = Project(uuid4().hex, name, "", enabled=True)
        projects.add(conn, project)
        audit_trail.project_created(conn, SETUP, project)
    if users.find(conn, NameOrId(name=name)) is not None:
        return False
    user = User(uuid4().hex, name, "", email=None, enabled=True, default_project_id=project.id)
    users.add(conn, user, identity.passwords.hash(_password(home, name)))
    assignments.add(conn, Holder(user.id), project.id, role)
    audit_trail.user_created(conn, SETUP, user, password=True)
    audit_trail.role_given(conn, SETUP, user, project.id, role)
    return True


def _password(home: Path, name: str) -> str:
    """Return the password in the file, or write a new one, so that it is on disk before the user exists."""
    kept = kept_password(home, name)
    if kept is None:
        # Letters and digits only: command lines would read a password that begins with a dash as an option.
        kept = "".join(choice(ascii_letters + digits) for _ in range(24))
        private_files.write(password_file(home, name), kept + "\n")
    return kept


def kept_password(home: Path, name: str) -> str | None:
    """Return the initial password of a user; None if its file does not exist."""
    try:
        return password_file(home, name).read_text(encoding="utf-8").strip() or None
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        why = f"{reason_of(error)}; the password of user {name} is expected there, in one line"
        raise SettingError(f"{password_file(home, name)} cannot be read: {why}") from error


def password_file(home: Path, name: str) -> Path:
    """Return the path of the initial password of a user."""
    return home / f"{name}-password"
