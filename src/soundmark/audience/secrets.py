"""The secrets that Audience keeps sealed: an integration's HMAC secret, and the key of its digests of tokens."""

from typing import Final

from soundmark.audience.store import instance_secrets
from soundmark.kit.clock import Clock
from soundmark.kit.entropy import Entropy
from soundmark.kit.postgres import Database
from soundmark.kit.sealing import Sealer
from soundmark.kit.secret import Secret

_TOKEN_KEY: Final = "token_digests"  # noqa: S105 - the name of a key, not the key
_TOKEN_KEY_BYTES: Final = 32


def seal_hmac_secret(sealer: Sealer, integration_id: str, secret: Secret) -> bytes:
    """What `integrations.sealed_secret` holds."""
    return sealer.seal(secret.reveal().encode(), table="integrations", column="sealed_secret", row=integration_id)


def open_hmac_secret(sealer: Sealer, integration_id: str, sealed: bytes) -> Secret:
    """The HMAC secret of an integration. Its whole text, prefix included, is the key (contract, section 6).

    Raises: kit.sealing.SealBroken.
    """
    opened = sealer.unseal(sealed, table="integrations", column="sealed_secret", row=integration_id)
    return Secret(opened.decode())


async def token_key(db: Database, sealer: Sealer, clock: Clock, entropy: Entropy) -> bytes:
    """The key under which measurement tokens are digested, made on the first start.

    A key of its own and not one derived from the master key: another master key must not make every token of the day
    a new one.

    Raises: DatabaseUnavailable; kit.sealing.SealBroken under another master key.
    """
    place = {"table": "instance_secrets", "column": "sealed", "row": _TOKEN_KEY}
    async with db.transaction() as tx:
        sealed = await instance_secrets.find(tx, _TOKEN_KEY)
        if sealed is None:
            fresh = sealer.seal(entropy.take(_TOKEN_KEY_BYTES), **place)
            await instance_secrets.insert_if_absent(tx, _TOKEN_KEY, sealed=fresh, now=clock.now())
            sealed = await instance_secrets.find(tx, _TOKEN_KEY)
    assert sealed is not None, "it is there, ours or that of a process which was faster"
    return sealer.unseal(sealed, **place)
