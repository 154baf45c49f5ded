"""The secrets with which messages to an endpoint are signed, sealed at rest."""

import base64
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from soundmark.core.domain.webhooks.endpoint import SECRET_PREFIX
from soundmark.kit.crypto.entropy import Entropy
from soundmark.kit.crypto.sealing import Sealer
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.ids import SECRET_BYTES

_TABLE: Final = "webhook_endpoints"
_COLUMN: Final = "sealed_secret"
_EARLIER_COLUMN: Final = "sealed_earlier_secret"


@dataclass(frozen=True, slots=True)
class SealedSecrets:
    """The sealed secrets of an endpoint. The earlier one, if there is one, signs too until `earlier_secret_until`."""

    id: str
    sealed_secret: bytes = field(repr=False)
    sealed_earlier_secret: bytes | None = field(repr=False)
    earlier_secret_until: datetime | None


def mint_webhook_secret(entropy: Entropy) -> Secret:
    """Return a new secret in the form of Standard Webhooks: `whsec_` and the standard base64 of 32 bytes."""
    return Secret(SECRET_PREFIX + base64.b64encode(entropy.take(SECRET_BYTES)).decode())


def seal_secret(sealer: Sealer, endpoint_id: str, secret: Secret) -> bytes:
    """Return the sealed form of an endpoint's present secret."""
    return sealer.seal(secret.reveal().encode(), table=_TABLE, column=_COLUMN, row=endpoint_id)


def seal_earlier(sealer: Sealer, endpoint_id: str, sealed_secret: bytes) -> bytes:
    """Return the sealed form that the endpoint's present secret has once another one has replaced it.

    Raises: SealBroken.
    """
    secret = sealer.unseal(sealed_secret, table=_TABLE, column=_COLUMN, row=endpoint_id)
    return sealer.seal(secret, table=_TABLE, column=_EARLIER_COLUMN, row=endpoint_id)


def open_secrets(sealer: Sealer, sealed: SealedSecrets, *, now: datetime) -> list[Secret]:
    """Return the secrets that sign a message at `now`: the present one, then the earlier one if it still signs.

    Raises: SealBroken.
    """
    opened = [sealer.unseal(sealed.sealed_secret, table=_TABLE, column=_COLUMN, row=sealed.id)]
    if sealed.sealed_earlier_secret is not None:
        assert sealed.earlier_secret_until is not None, "the table requires both or neither"
        if now < sealed.earlier_secret_until:
            opened.append(
                sealer.unseal(sealed.sealed_earlier_secret, table=_TABLE, column=_EARLIER_COLUMN, row=sealed.id)
            )
    return [Secret(secret.decode()) for secret in opened]
