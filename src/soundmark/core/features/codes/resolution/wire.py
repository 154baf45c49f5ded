"""The published verification keys."""

from typing import Annotated, Literal, TypeAlias

from pydantic import ConfigDict, StringConstraints

from soundmark.core.views.signing_keys import HistoricKey
from soundmark.kit.text import base64url
from soundmark.wire.shape import KeyId, Wire

PublishedStatus: TypeAlias = Literal["active", "next", "retiring"]


class VerificationKey(Wire):
    """A public Ed25519 key as a JSON Web Key (RFC 7517, RFC 8037), with its status."""

    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    alg: Literal["EdDSA"]
    use: Literal["sig"]
    kid: KeyId
    x: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{43}$")]
    status: PublishedStatus


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
    """A JWK Set of every key ever used for signing, oldest first."""

    keys: list[HistoricKey]
