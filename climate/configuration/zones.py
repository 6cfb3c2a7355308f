"""Settings of zones, read into the options of the bundled cloud."""

from collections.abc import Mapping

from cryptography.fernet import MultiFernet
from sqlalchemy import Engine

from climate.compute.errors import BadRequest, ComputeError
from climate.compute.store.zones import child_zones
from climate.compute.zones import capabilities
from climate.compute.zones.builds.blobs import BlobKeys
from climate.compute.zones.http.client import HttpChildClient
from climate.compute.zones.http.transport import SocketTransport, Transport
from climate.compute.zones.options import Zones
from climate.sealed_secrets import Unreadable, Vault
from climate.settings import SettingError, Settings

PASSWORD = "password"  # noqa: S105

MOST_PASSWORDS = 1024
"""Maximum of cached passwords."""


def options(settings: Settings, engine: Engine, vault: Vault, transport: Transport | None = None) -> Zones:
    """Return the zones of a deployment.  `transport` None: children are called over the network."""
    own_id = _OwnId(engine)
    return Zones(
        name=settings.zone_name,
        capabilities=_capabilities(settings),
        admin_api=settings.allow_admin_api,
        routing=settings.enable_zone_routing,
        poll_seconds=settings.zone_poll_seconds,
        timeout_seconds=settings.zone_timeout_seconds,
        failures_to_offline=settings.zone_failures_to_offline,
        client=HttpChildClient(own_id, settings.zone_timeout_seconds, transport or SocketTransport()),
        own_id=own_id,
        seal=lambda password: vault.seal({PASSWORD: password}),
        unseal=Passwords(vault),
        blobs=_blob_keys(settings),
    )


def check(settings: Settings) -> None:
    """Raise SettingError for an invalid name or invalid capabilities; opens nothing."""
    _capabilities(settings)
    _blob_keys(settings)
    if not capabilities.is_name(settings.zone_name):
        raise SettingError(
            f"CLIMATE_ZONE_NAME={settings.zone_name!r} must be 1 to 255 letters, digits, blanks, '_', '.' and '-'"
        )


class _OwnId:
    """The id of this deployment, read from its database once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: str | None = None

    def __call__(self) -> str:
        if self._known is None:
            with self._engine.begin() as conn:
                self._known = child_zones.own_id(conn)
        return self._known


class Passwords:
    """Decrypted passwords of child zones, cached while the keys of the vault stay the same.

    Each forwarded request needs one, and decrypting costs as much as checking a token.
    """

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._keys: MultiFernet | None = None
        self.known: dict[str, str] = {}
        """Encrypted password -> plain text."""

    def __call__(self, sealed: str) -> str:
        """Return the password; ComputeError if its key is gone."""
        keys = self._vault.fernet()
        if self._keys is not keys or len(self.known) >= MOST_PASSWORDS:
            self.known, self._keys = {}, keys
        password = self.known.get(sealed)
        if password is None:
            password = self.known[sealed] = _opened(self._vault, sealed)
        return password


def _opened(vault: Vault, sealed: str) -> str:
    try:
        return str(vault.open(sealed)[PASSWORD])
    except Unreadable:
        raise ComputeError("The password of a child zone was encrypted with a key that is gone; set it again") from None


def _capabilities(settings: Settings) -> Mapping[str, str]:
    try:
        return capabilities.parse(settings.zone_capabilities)
    except BadRequest as error:
        raise SettingError(f"CLIMATE_ZONE_CAPABILITIES={settings.zone_capabilities!r}: {error}") from None


def _blob_keys(settings: Settings) -> BlobKeys:
    try:
        return BlobKeys.read(settings.build_plan_encryption_key, settings.blob_seconds)
    except BadRequest as error:
        raise SettingError(f"CLIMATE_BUILD_PLAN_ENCRYPTION_KEY: {error}") from None
