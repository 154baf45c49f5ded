"""Genuine answers, made from the wire contract with PyNaCl and rfc8785 and without the package under test."""

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import rfc8785
from nacl.signing import SigningKey

TOKEN: Final = "brd_Zk3-_9aBcD01xYz7"
XR_ID: Final = "xr_0123456789abcdefABCDEF"
INTEGRATION_ID: Final = "int_0123456789abcdefABCDEF"
NOW: Final = datetime(2026, 11, 20, 10, 0, 30, 500_000, tzinfo=UTC)
INTENT: Final = {
    "type": "link",
    "action": "open",
    "resource": {"url": "https://example.org/é", "n": [1, -2.5, True, None], "o": {}},
}
UNMEASURED: Final = {"audience_measurement": False, "audience_integration_id": None}
MEASURED: Final = {"audience_measurement": True, "audience_integration_id": INTEGRATION_ID}

Json = dict[str, Any]


def base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def digest(token: str) -> str:
    return base64url(hashlib.sha256(token.encode()).digest())


def timestamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def compact(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


class Issuer:
    """The answers of Core, with one signing key."""

    def __init__(self, seed: bytes = b"soundmark-sdk-tests-signing-seed", key_id: str = "key-2026-11") -> None:
        self.signing_key = SigningKey(seed)
        self.key_id = key_id

    def jwk(self, **changes: Any) -> Json:
        point = base64url(bytes(self.signing_key.verify_key))
        fixed = {"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig"}
        return {**fixed, "kid": self.key_id, "x": point, "status": "active", **changes}

    def key_set(self, *others: Json) -> bytes:
        return compact({"keys": [self.jwk(), *others]})

    def sign(self, message: bytes) -> str:
        return base64url(self.signing_key.sign(message).signature)

    def signed(self, document: Json) -> Json:
        """Return the document with `signature` over its canonical form."""
        return {**document, "signature": self.sign(rfc8785.dumps(document))}

    def proof(self, *, issued_at: datetime = NOW, lifetime_s: float = 300, **changes: Any) -> Json:
        document = {
            "proof_id": "prf_0123456789abcdefABCDEF",
            "xr_id": XR_ID,
            "integration_id": INTEGRATION_ID,
            "campaign_id": None,
            "issued_at": timestamp(issued_at),
            "expires_at": timestamp(issued_at + timedelta(seconds=lifetime_s)),
            "key_id": self.key_id,
            **changes,
        }
        return self.signed({name: value for name, value in document.items() if value is not ...})

    def payload(self, *, issued_at: datetime = NOW, lifetime_s: float = 120, **changes: Any) -> Json:
        document = {
            "version": 1,
            "xr_id": XR_ID,
            "intent": INTENT,
            "policy": UNMEASURED,
            "token_digest": digest(TOKEN),
            "issued_at": timestamp(issued_at),
            "expires_at": timestamp(issued_at + timedelta(seconds=lifetime_s)),
            "key_id": self.key_id,
            **changes,
        }
        return {name: value for name, value in document.items() if value is not ...}

    def envelope(self, payload: Json, *, payload_bytes: bytes | None = None, **changes: Any) -> Json:
        signed = rfc8785.dumps(payload) if payload_bytes is None else payload_bytes
        envelope = {name: payload.get(name) for name in ("version", "key_id", "issued_at", "expires_at")}
        return {**envelope, "payload": base64url(signed), "signature": self.sign(signed), **changes}

    def answer_to(self, payload: Json, **changes: Any) -> Json:
        """Return the outer answer for a payload, equal to it except for the changes; `...` removes a member."""
        mirrored = {
            name: payload[name] for name in ("xr_id", "intent", "policy", "measurement_proof") if name in payload
        }
        answer = {**mirrored, "signature_status": "verified", "resolution_proof": self.envelope(payload), **changes}
        return {name: value for name, value in answer.items() if value is not ...}

    def answer(self, **payload_changes: Any) -> Json:
        return self.answer_to(self.payload(**payload_changes))

    def measured_answer(self, **proof_changes: Any) -> Json:
        return self.answer(policy=MEASURED, measurement_proof=self.proof(**proof_changes))

    def signed_code(self, **changes: Any) -> Json:
        document = {
            "version": 1,
            "xr_id": XR_ID,
            "organization_id": "org_0123456789abcdefABCDEF",
            "project_id": "prj_0123456789abcdefABCDEF",
            "campaign_id": "cmp_0123456789abcdefABCDEF",
            "issuer": "Ma boutique",
            "issued_at": timestamp(NOW),
            "expires_at": timestamp(NOW + timedelta(days=1)),
            "intent": INTENT,
            "policy": MEASURED,
            "token_digest": digest(TOKEN),
            "key_id": self.key_id,
            **changes,
        }
        return self.signed({name: value for name, value in document.items() if value is not ...})
