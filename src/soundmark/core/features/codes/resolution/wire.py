"""The published verification keys."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, Field, StringConstraints

from soundmark.kit.text import base64url
from soundmark.wire.shape import KeyId, Timestamp, Wire

PublishedStatus: TypeAlias = Literal["active", "next", "retiring"]
SignedStatus: TypeAlias = Literal["active", "retiring", "retired"]  # A staged (`next`) key has signed nothing yet.


class VerificationKey(Wire):
    """A public Ed25519 key as a JSON Web Key (RFC 7517, RFC 8037), with its status."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    alg: Literal["EdDSA"]
    use: Literal["sig"]
    kid: KeyId
    x: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
    status: PublishedStatus


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


class KeySet(Wire):
    """A JWK Set that every JOSE library can read."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "keys": [
                        {
                            "kty": "OKP",
                            "crv": "Ed25519",
                            "alg": "EdDSA",
                            "use": "sig",
                            "kid": "sig_c2lnbmluZy1rZXktZXhh",
                            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
                            "status": "active",
                        }
                    ]
                }
            ]
        }
    )

    keys: list[VerificationKey]


def verification_key(key_id: str, public_key: bytes, status: PublishedStatus) -> VerificationKey:
    """Return one key as the key set shows it."""
    return VerificationKey(
        kty="OKP",
        crv="Ed25519",
        alg="EdDSA",
        use="sig",
        kid=key_id,
        x=base64url.encode(public_key),
        status=status,
    )


class KeyHistory(Wire):
    """A JWK Set of every key that was ever used for signing, oldest first."""

    keys: list[HistoricKey]


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
