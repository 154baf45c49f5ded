"""The secrets that Audience keeps sealed: the HMAC secrets of integrations, and the key of the token digests."""

from typing import Final

from soundmark.kit.clock import Clock
from soundmark.kit.crypto import instance_secrets
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.postgres.database import Database

_TOKEN_KEY: Final = "token_digests"  # noqa: S105 - the name of a key, not the key
_TOKEN_KEY_BYTES: Final = 32


def seal_hmac_secret(sealer: Sealer, integration_id: str, secret: Secret) -> bytes:
    """Return a sealed HMAC secret, for `integrations.sealed_secret`."""
    return sealer.seal(secret.reveal().encode(), table="integrations", column="sealed_secret", row=integration_id)


def open_hmac_secret(sealer: Sealer, integration_id: str, sealed: bytes) -> Secret:
    """Return the HMAC secret of an integration. Its whole text, prefix included, is the key (contract, section 6).

    Raises: kit.crypto.sealing.SealBroken.
    """
    opened = sealer.unseal(sealed, table="integrations", column="sealed_secret", row=integration_id)
    return Secret(opened.decode())


async def token_key(db: Database, sealer: Sealer, clock: Clock, entropy: Entropy) -> bytes:
    """Return the key under which measurement tokens are digested; create it on the first start.

    It is not derived from the master key, because a new master key would then change the digest of every token.

    Raises: DatabaseUnavailable; kit.crypto.sealing.SealBroken under another master key.
    """
    async with db.transaction() as tx:
        return await instance_secrets.ensure(
            tx, sealer, _TOKEN_KEY, make=lambda: entropy.take(_TOKEN_KEY_BYTES), now=clock.now()
        )
