"""The ids of deletion certificates, which are known before the deletion."""

import hmac
from typing import Final

from soundmark.core.context import Context
from soundmark.core.domain.tenancy.closure import CERTIFICATE_PREFIX, ClosureSubject
from soundmark.kit.crypto import instance_secrets
from soundmark.kit.postgres.transaction import Tx
from soundmark.kit.text import base64url
from soundmark.kit.text.ids import ID_CHARS

_SECRET_NAME: Final = "certificate_ids"  # noqa: S105 - its name, not its content
_SECRET_BYTES: Final = 32


async def derive_certificate_id(ctx: Context, tx: Tx, subject: ClosureSubject) -> str:
    """Return the id that the certificate of a subject will have.

    Nobody can guess it without a secret of this instance, and asking stores nothing for the subject. The secret is made
    when the first id is needed.

    Raises: SealBroken if the secret was sealed under another master key.
    """
    secret = await instance_secrets.ensure(
        tx, ctx.sealer, _SECRET_NAME, make=lambda: ctx.entropy.take(_SECRET_BYTES), now=ctx.clock.now()
    )
    name = f"{subject.organization_id}/{subject.project_id or ''}"
    return CERTIFICATE_PREFIX + base64url.encode(hmac.digest(secret, name.encode(), "sha256"))[:ID_CHARS]
