"""Password that a guest posts to its metadata service once, and that its owner reads from Compute.

The guest encrypts it with the public key of the server, and nobody without the private key can read it.
"""

from climate.compute.context import Compute
from climate.compute.errors import BadRequest, Conflict
from climate.compute.metadata import metadata_service
from climate.compute.store.servers import guest_passwords
from climate.database.connections import reading

LONGEST = 1020
"""Maximum number of bytes of a posted password, as in Nova."""


def post(compute: Compute, address: str, content: bytes) -> None:
    """Record the password of the server with this source address.

    Raise NotFound for an address of no server, BadRequest for an invalid text, Conflict if there is a password already.
    """
    password = _checked(content)
    with compute.engine.begin() as conn:
        server_id = metadata_service.server_at(conn, address).id
        if not guest_passwords.add(conn, server_id, password):
            raise Conflict(
                f"Server {server_id} has a password already; its owner deletes it by DELETE "
                f"/servers/{server_id}/os-server-password of Compute."
            )


def of_server(compute: Compute, server_id: str) -> str:
    """Return the password of a server, as its guest encrypted it; an empty text without one."""
    with reading(compute.engine) as conn:
        return guest_passwords.get(conn, server_id)


def delete(compute: Compute, server_id: str) -> None:
    """Delete the password of a server, so that its guest can post another one."""
    with compute.engine.begin() as conn:
        guest_passwords.clear(conn, server_id)


def _checked(content: bytes) -> str:
    if not content or len(content) > LONGEST:
        raise BadRequest(f"The password has {len(content)} bytes; send 1 to {LONGEST} bytes of text.")
    try:
        password = content.decode()
    except UnicodeDecodeError:
        raise BadRequest("The password is not a text in UTF-8; encode it in Base64.") from None
    if "\0" in password:
        raise BadRequest("The password has a null character; encode it in Base64.")
    return password
