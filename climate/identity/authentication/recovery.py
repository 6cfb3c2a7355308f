"""Recovery of access on the machine of the store: the administrator's password, and clouds.yaml."""

from collections.abc import Callable

from climate.domain.errors import Conflict, NotFound
from climate.domain.policy import ADMIN, Caller
from climate.identity import clouds_yaml, private_files, projects_and_users, read_operations, roles
from climate.identity.clouds_yaml import InitialPassword
from climate.identity.context import Identity
from climate.identity.initial_accounts import USERS, kept_password, password_file
from climate.identity.store.assignments import Holder
from climate.settings import Settings

RECOVERY = Caller("climate:recovery", "")
"""Author of the changes."""

NAME = "admin"
"""User, and project, of the administrator."""

Echo = Callable[[str], None]


def reset_admin_password(identity: Identity, settings: Settings, password: str, echo: Echo) -> str:
    """Set the password of the administrator, enable user and project, assign the role, and write the files of the home.

    Tokens of the administrator are revoked. Return the address in clouds.yaml. Raise NotFound without a user `admin`,
    InvalidInput for a bad password.
    """
    if settings.identity == "keystone":
        raise Conflict("Users and passwords are Keystone's; reset the password there")
    user = next((one for one in read_operations.users(identity, NAME) if one.domain_id is None), None)
    if user is None:
        raise NotFound(f"There is no user {NAME}; the next start of `climate up` creates it with a new password")
    projects_and_users.change_user(identity, RECOVERY, user.id, {"password": password, "enabled": True})
    project = next((one for one in read_operations.projects(identity, NAME) if one.domain_id is None), None)
    if project is None:
        project = projects_and_users.create_project(identity, RECOVERY, projects_and_users.NewProject(NAME))
    if not project.enabled:
        projects_and_users.change_project(identity, RECOVERY, project.id, {"enabled": True})
    roles.assign(identity, RECOVERY, Holder(user.id), project.id, ADMIN)
    private_files.write(password_file(settings.home, NAME), password + "\n")
    return write_clouds(settings, echo, fresh=NAME)


def write_clouds(settings: Settings, echo: Echo, url: str = "", fresh: str = "") -> str:
    """Write the clouds of this deployment to `<home>/clouds.yaml`, with the initial passwords where it has none.

    Return the address in the file. Without `url`, the file keeps its address. The password of the user `fresh` replaces
    the one in the file.
    """
    file = settings.home / "clouds.yaml"
    known = {name: InitialPassword(kept_password(settings.home, name), new=name == fresh) for name in USERS}
    address = url or clouds_yaml.address(file) or settings.base_url
    clouds_yaml.write(file, address, known, echo)
    return address
