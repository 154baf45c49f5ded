"""What reads access tokens, patient and impatient, and every kind of forgery."""

import base64
import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Iterator

from core_app import FakeClock
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from issuer import CLIENT_ID, Issuer, IssuerKey, key, unsigned

from soundmark.core.access.oidc import OidcAccess
from soundmark.kit.problems import Unauthenticated

PATIENCE_S, IMPATIENCE_S = 30, 0.3
FRESH_S, AGAIN_S = 180, 10


@contextlib.asynccontextmanager
async def access_to(issuer: Issuer, clock: FakeClock) -> AsyncIterator[OidcAccess]:
    access = OidcAccess(issuer.url, CLIENT_ID, clock, timeout_s=PATIENCE_S)
    try:
        yield access
    finally:
        await access.aclose()


@contextlib.contextmanager
def impatient(access: OidcAccess) -> Iterator[None]:
    """The deadline is short, for an issuer that will not answer; a good one on a busy machine is given its time."""
    access._keys._timeout_s = IMPATIENCE_S  # type: ignore[misc]  # final everywhere else  # a fault is injected
    yield
    access._keys._timeout_s = PATIENCE_S  # type: ignore[misc]  # final everywhere else


async def is_accepted(access: OidcAccess, token: str) -> bool:
    try:
        await access.user_of(token)
    except Unauthenticated:
        return False
    return True


def signed_with_public_key(issuer: Issuer, secret: bytes) -> str:
    """HS256 under what everybody can read."""
    header = {"alg": "HS256", "typ": "JWT", "kid": issuer.keys[0].kid}
    text = unsigned(header, issuer.claims()).rpartition(".")[0]
    digest = hmac.new(secret, text.encode(), hashlib.sha256).digest()
    return text + "." + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def forgeries(issuer: Issuer) -> dict[str, str]:
    public = issuer.keys[0].private.public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    good, claims = issuer.token(), issuer.claims()
    head, body, signature = good.split(".")
    foreign, weak = key("first", number=1), IssuerKey("first", "RS384", issuer.keys[0].private)
    return {
        "alg none": unsigned({"alg": "none", "kid": "first"}, claims),
        "alg None": unsigned({"alg": "None", "kid": "first"}, claims),
        "alg none, signed": unsigned({"alg": "none", "kid": "first"}, claims, b"x" * 256),
        "no alg": unsigned({"kid": "first"}, claims, b"x" * 256),
        "alg null": unsigned({"alg": None, "kid": "first"}, claims, b"x" * 256),
        "alg a list": unsigned({"alg": ["RS256"], "kid": "first"}, claims, b"x" * 256),
        "HS256 with the PEM": signed_with_public_key(issuer, pem),
        "HS256 with the DER": signed_with_public_key(
            issuer, public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        ),
        "HS256 with the modulus": signed_with_public_key(issuer, issuer.keys[0].jwk["n"].encode()),
        "HS256 with nothing": signed_with_public_key(issuer, b""),
        "an algorithm that is not on the list": issuer.signed(claims, by=weak),
        "another's key under our kid": issuer.token(by=foreign),
        "another's key under its own kid": issuer.token(by=key("theirs", number=1)),
        "an embedded key": issuer.signed(claims, by=foreign, jwk=foreign.jwk),
        "an address of keys": issuer.signed(claims, by=foreign, jku="https://evil.example/jwks"),
        "no kid": issuer.signed(claims, kid=None),
        "a critical extension": issuer.signed(claims, crit=["exp"], exp=1),
        "a detached payload": issuer.signed(claims, b64=False, crit=["b64"]),
        "an edited payload": f"{head}.{body[:-2]}AA.{signature}",
        "an edited header": unsigned({"alg": "RS256", "kid": "first", "x": 1}, {}).partition(".")[0]
        + f".{body}.{signature}",
        "no signature": f"{head}.{body}.",
        "half a signature": f"{head}.{body}.{signature[:170]}",
        "two parts": f"{head}.{body}",
        "four parts": good + ".x",
        "five parts": "a.b.c.d.e",
        "dots": "..",
        "text": "token",
        "a list for claims": issuer.signed(b"[]"),
        "broken claims": issuer.signed(b"{"),
        "a claim twice": issuer.signed(json.dumps(claims).encode()[:-1] + b', "sub": "mallory"}'),
        "claims without an end": issuer.signed(b'{"exp": Infinity}'),
        "beyond ASCII": good + "ä",
    }
