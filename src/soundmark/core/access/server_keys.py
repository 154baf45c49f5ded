"""API keys as credentials."""

import hashlib
import re
from datetime import timedelta
from typing import Final

from soundmark.core.domain.tenancy.scope import ServerKey
from soundmark.core.store.tenancy import api_keys
from soundmark.kit.clock import Clock
from soundmark.kit.http.responses.problems import Unauthenticated
from soundmark.kit.postgres.database import Database
from soundmark.kit.postgres.shared_connection import SharedConnection

_SECRET: Final = re.compile(r"xak_[A-Za-z0-9_-]{43}", re.ASCII)  # Contract, section 1.
_NOTED_EVERY: Final = timedelta(minutes=1)  # Contract, section 2.


def digest_of_secret(secret: str) -> bytes:
    """Return the SHA-256 digest of a secret, which is what is stored; a secret has 256 random bits."""
    return hashlib.sha256(secret.encode()).digest()


class ServerKeyAccess:
    """Finds API keys by the digests of their secrets, and records at most once a minute that a key is used.

    Every request queries the database, so that a secret that was replaced stops working in every process at once.
    """

    def __init__(self, db: Database, reads: SharedConnection, clock: Clock) -> None:
        self._db: Final = db
        self._reads: Final = reads
        self._clock: Final = clock

    async def key_of(self, secret: str) -> ServerKey:
        """Return the key, which is neither revoked nor expired.

        Raises: Unauthenticated; DatabaseUnavailable.
        """
        if _SECRET.fullmatch(secret) is None:
            raise Unauthenticated
        digest = digest_of_secret(secret)
        found = await api_keys.find_by_digest(self._reads, digest)
        now = self._clock.now()
        if found is None or found.status(now) != "active":
            raise Unauthenticated
        key = ServerKey(found.id, found.organization_id, found.project_id, frozenset(found.scopes), digest)
        if found.last_used_at is None or found.last_used_at <= now - _NOTED_EVERY:
            async with self._db.transaction(tenant=key.organization_id) as tx:
                await api_keys.update_last_used(tx, key, now=now, used_before=now - _NOTED_EVERY)
        return key
