"""The public view of every key that was ever used for signing."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, StringConstraints

from soundmark.core.domain.codes.signing_key import SigningKeyRecord
from soundmark.kit.text import base64url
from soundmark.wire.shape import KeyId, Timestamp, Wire

SignedStatus: TypeAlias = Literal["active", "retiring", "retired"]  # A staged (`next`) key has signed nothing yet.


class HistoricKey(Wire):
    """A public Ed25519 key as a JSON Web Key (RFC 7517, RFC 8037), with the period in which it was used for signing."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    alg: Literal["EdDSA"]
    use: Literal["sig"]
    kid: KeyId
    x: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
    status: SignedStatus
    activated_at: Annotated[Timestamp, Field(description="When it became the signing key.")]
    superseded_at: Annotated[Timestamp | None, Field(description="When another key replaced it; null until then.")]


def historic_key(
    key_id: str,
    public_key: bytes,
    status: SignedStatus,
    *,
    activated_at: datetime,
    superseded_at: datetime | None,
) -> HistoricKey:
    """Return one key as the history shows it."""
    return HistoricKey(
        kty="OKP",
        crv="Ed25519",
        alg="EdDSA",
        use="sig",
        kid=key_id,
        x=base64url.encode(public_key),
        status=status,
        activated_at=activated_at,
        superseded_at=superseded_at,
    )


def key_history_view(records: Iterable[SigningKeyRecord]) -> list[HistoricKey]:
    """Return those of the keys that were ever used for signing, in their order."""
    return [
        historic_key(
            record.key_id,
            record.public_key,
            record.status,
            activated_at=record.activated_at,
            superseded_at=record.superseded_at,
        )
        for record in records
        if record.status != "next" and record.activated_at is not None
    ]
