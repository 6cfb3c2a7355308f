"""A key pair for SSH: the public key is stored, the private key is only given to its owner."""

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from climate.compute.errors import BadRequest

LONGEST = 16384
"""Maximum number of characters of a public key."""

_NAME = re.compile(r"[A-Za-z0-9 ._@-]{1,255}")
_FORM = "public_key must be one line like 'ssh-ed25519 AAAA… comment'"


@dataclass(frozen=True, slots=True)
class MadeKeys:
    """A generated key pair, both keys in the format of OpenSSH."""

    public: str
    private: str


def generate(comment: str) -> MadeKeys:
    """Return a new pair of Ed25519 keys."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    return MadeKeys(f"{public.decode()} {comment}", private.decode())


def check_name(name: str) -> str:
    """Return a name that is valid in a path and in a file of keys; else BadRequest."""
    if not _NAME.fullmatch(name) or not name.strip():
        raise BadRequest("Keypair names hold letters, digits, blanks and . _ @ - only, 1 to 255 of them.")
    return name


def check_public(key: str) -> str:
    """Return a public key in one line, stripped of blanks; BadRequest if it is invalid."""
    line = key.strip()
    if len(line) > LONGEST or not line.isprintable():
        raise BadRequest(_FORM)
    kind, blob = _parts(line)
    if blob[:4] != len(kind).to_bytes(4, "big") or blob[4 : 4 + len(kind)] != kind.encode():
        raise BadRequest(_FORM)
    return line


def fingerprint(public: str) -> str:
    """Return the MD5 of the key, as ssh-keygen -l -E md5 shows it: an identifier, not a protection."""
    digest = hashlib.md5(_parts(public)[1], usedforsecurity=False).hexdigest()
    return ":".join(digest[index : index + 2] for index in range(0, len(digest), 2))


def _parts(line: str) -> tuple[str, bytes]:
    words = line.split()
    try:
        return words[0], base64.b64decode(words[1], validate=True)
    except (IndexError, binascii.Error, ValueError):
        raise BadRequest(_FORM) from None
