"""Every kind of access token that an issuer never issued, or that two parsers could read differently."""

import base64
import hmac
import json
import string

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from support.identity.oidc_issuer import IssuerKey, OidcIssuer, encode_part, make_issuer_key, make_unsigned_token

_LETTERS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"


def make_forgeries(issuer: OidcIssuer) -> dict[str, str]:
    """Return every kind of forged token, by what is wrong with it."""
    return {
        **_of_another_algorithm(issuer),
        **_of_another_key(issuer),
        **_altered(issuer),
        **_spelt_otherwise(issuer),
        **_nested(issuer),
        **_ambiguous(issuer),
    }


def _of_another_algorithm(issuer: OidcIssuer) -> dict[str, str]:
    first, claims = issuer.keys[0], issuer.claims()
    public = first.private.public_key()
    secrets = {
        "the PEM": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "the PEM without its last line end": public.public_bytes(
            Encoding.PEM, PublicFormat.SubjectPublicKeyInfo
        ).strip(),
        "the PEM of PKCS 1": public.public_bytes(Encoding.PEM, PublicFormat.PKCS1),
        "the DER": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "the modulus": first.jwk["n"].encode(),
        "the JWK": json.dumps(first.jwk).encode(),
        "the kid": first.kid.encode(),
        "nothing": b"",
    }
    unsigned_ones = {
        f"alg {alg!r}{', signed' if signature else ''}": make_unsigned_token(
            {"alg": alg, "kid": "first"}, claims, signature
        )
        for alg in (
            "none",
            "None",
            "NONE",
            "nOnE",
            "",
            None,
            ["RS256"],
            {"RS256": 1},
            0,
            "rs256",
            "RS256 ",
            "RS256,none",
        )
        for signature in (b"", b"x" * 256)
    }
    return {
        **unsigned_ones,
        **{f"HS256 with {name}": _signed_with_secret(issuer, secret) for name, secret in secrets.items()},
        "HS512 with the PEM": _signed_with_secret(issuer, secrets["the PEM"], "HS512"),
        "no alg": make_unsigned_token({"kid": "first"}, claims, b"x" * 256),
        "an algorithm that is not on the list": issuer.signed(claims, by=IssuerKey("first", "RS384", first.private)),
        "an algorithm that its key has not": issuer.signed(claims, by=IssuerKey("first", "PS256", first.private)),
    }


def _of_another_key(issuer: OidcIssuer) -> dict[str, str]:
    claims, foreign = issuer.claims(), make_issuer_key("first", number=1)
    there = "https://evil.example/keys"
    certificate = base64.b64encode(foreign.private.public_key().public_bytes(Encoding.DER, PublicFormat.PKCS1)).decode()
    named = {
        "a key in the header": {"jwk": foreign.jwk},
        "an address of keys": {"jku": there},
        "an address of keys that is a file": {"jku": "file:///etc/passwd"},
        "an address of a certificate": {"x5u": there},
        "a certificate": {"x5c": [certificate]},
        "a digest of a certificate": {"x5t": "AAAA", "x5t#S256": "AAAA"},
        "everything": {"jwk": foreign.jwk, "jku": there, "x5u": there, "x5c": [certificate]},
    }
    kids = ["../../dev/null", "/dev/null", there, "first' OR '1'='1", "first\0", "First", "", " first", "k" * 4000, "*"]
    return {
        "another's key under our kid": issuer.signed(claims, by=foreign),
        "another's key under its own kid": issuer.signed(claims, by=make_issuer_key("theirs", number=1)),
        **{
            f"another's key, with {name}": issuer.signed(claims, by=foreign, **header) for name, header in named.items()
        },
        **{f"kid {kid[:20]!r}": issuer.signed(claims, by=IssuerKey(kid, "RS256", foreign.private)) for kid in kids},
        **{
            f"kid {kid!r}": issuer.signed_as({"kid": kid}, claims)
            for kid in (None, 0, True, ["first"], {"first": 1}, ["first", "second"])
        },
        "another's key, without a kid": issuer.signed(claims, by=foreign, kid=None),
    }


def _altered(issuer: OidcIssuer) -> dict[str, str]:
    good = issuer.token()
    head, body, signature = good.split(".")
    other_body = encode_part(json.dumps(issuer.claims("mallory")).encode())
    other_head = encode_part(json.dumps({"alg": "RS256", "kid": "first", "typ": "at+jwt"}).encode())
    return {
        "edited claims": f"{head}.{body[:-2]}AA.{signature}",
        "another's claims": f"{head}.{other_body}.{signature}",
        "an edited header": f"{other_head}.{body}.{signature}",
        "no signature": f"{head}.{body}.",
        "half a signature": f"{head}.{body}.{signature[:170]}",
        "a signature of zeros": f"{head}.{body}.{encode_part(bytes(256))}",
        "a signature of one": f"{head}.{body}.{encode_part(bytes(255) + bytes([1]))}",
        "a longer signature": f"{head}.{body}.{signature}AAAA",
        "two parts": f"{head}.{body}",
        "four parts": good + ".x",
        "five parts": "a.b.c.d.e",
        "the parts in another order": f"{body}.{head}.{signature}",
        "no header": f".{body}.{signature}",
        "no claims": f"{head}..{signature}",
        "dots": "..",
        "text": "token",
        "another credential before it": f"xop_{good}",
    }


def _spelt_otherwise(issuer: OidcIssuer) -> dict[str, str]:
    """Yield tokens whose parts are spelled in base64url as no encoder writes it."""
    parts = issuer.token().split(".")
    respelt = {}
    for number, name in enumerate(("header", "claims", "signature")):
        part = parts[number]
        # The last letter of each holds unused bits if the length is not a multiple of four.
        last = _LETTERS[(_LETTERS.index(part[-1]) + 1) % 64]
        for how, spelling in {
            "with another last letter": part[:-1] + last,
            "with padding": part + "=" * (-len(part) % 4 or 4),
            "with one sign of padding": part + "=",
            "in standard base64": base64.b64encode(_decoded(part)).decode(),
            "with a line end": part + "\n",
            "with a line end inside": f"{part[:8]}\r\n{part[8:]}",
            "with a space before it": " " + part,
            "with a tab after it": part + "\t",
            "with a sign of no alphabet inside": f"{part[:8]}!{part[8:]}",
            "with a letter beyond ASCII": part + "ä",
            "with a percent escape": part[:-1] + f"%{ord(part[-1]):02x}",
            "with a NUL": part + "\0",
        }.items():
            # In standard base64 the spelling may happen to be the same.
            if spelling != part:
                respelt[f"{name} {how}"] = ".".join([*parts[:number], spelling, *parts[number + 1 :]])
    return respelt


def _nested(issuer: OidcIssuer) -> dict[str, str]:
    good, foreign = issuer.token(), make_issuer_key("theirs", number=1)
    rest = good.partition(".")[2]
    deep = b'{"alg":' * 500 + b"1" + b"}" * 500
    encrypted = {"alg": "dir", "enc": "A256GCM", "kid": "first", "cty": "JWT"}
    return {
        "a token for claims": issuer.signed(good.encode(), cty="JWT"),
        "a token as a text for claims": issuer.signed(json.dumps(good).encode(), cty="JWT"),
        "a token in another's token": issuer.signed(good.encode(), by=foreign, cty="JWT"),
        "a token in an unsigned one": make_unsigned_token(
            {"alg": "none", "kid": "first", "cty": "JWT"}, {"token": good}
        ),
        "a token in the header": make_unsigned_token({"alg": "RS256", "kid": "first", "jwt": good}, {}, b"x" * 256),
        "an encrypted token": encode_part(json.dumps(encrypted).encode()) + "..AAAA.AAAA.AAAA",
        "the JSON form": json.dumps(dict(zip(("protected", "payload", "signature"), good.split("."), strict=True))),
        "a list for claims": issuer.signed(b"[]"),
        "a text for claims": issuer.signed(b'"alice"'),
        "null for claims": issuer.signed(b"null"),
        "broken claims": issuer.signed(b"{"),
        "claims that are not UTF-8": issuer.signed(b'{"sub": "\xff"}'),
        "claims in UTF-16": issuer.signed(json.dumps(issuer.claims()).encode("utf-16")),
        "claims with a mark of byte order": issuer.signed(json.dumps(issuer.claims()).encode("utf-8-sig")),
        "claims nested without end": issuer.signed_bytes(b'{"alg": "RS256", "kid": "first"}', b"[" * 4000),
        "a header nested without end": f"{encode_part(b'[' * 4000)}.{rest}",
        "a header nested deeply": f"{encode_part(deep)}.{rest}",
    }


def _ambiguous(issuer: OidcIssuer) -> dict[str, str]:
    """Yield tokens with a genuine signature that two parsers could read differently."""
    claims = json.dumps(issuer.claims()).encode()
    beginning = b'{"alg": "RS256", "kid": "first", "typ": "JWT"'
    headers = {
        "typ": b', "typ": "at+jwt"}',
        "kid": b', "kid": "first"}',
        "alg": b', "alg": "RS256"}',
        "typ, spelt with an escape": b', "\\u0074yp": "at+jwt"}',
    }
    members = {
        "sub": b'"mallory"',
        "azp": b'"console"',
        "email_verified": b"true",
        "exp": b"9999999999",
        "typ": b'"Bearer"',
        "acr": b'"2"',
        "\\u0073ub": b'"mallory"',
    }
    critical = {"exp": ["exp"], "b64": ["b64"], "nothing": [], "no list": "exp", "what is not there": ["absent"]}
    return {
        **{f"header twice: {name}": issuer.signed_bytes(beginning + more, claims) for name, more in headers.items()},
        **{
            f"claim twice: {name}": issuer.signed(claims[:-1] + b', "' + name.encode() + b'": ' + value + b"}")
            for name, value in members.items()
        },
        "a claim twice, deeper down": issuer.signed(claims[:-1] + b', "realm_access": {"roles": [], "roles": []}}'),
        **{
            f"a critical extension: {name}": issuer.signed_as({"crit": value, "exp": 1}, issuer.claims())
            for name, value in critical.items()
        },
        "a critical extension that is null": issuer.signed_as({"crit": None}, issuer.claims()),
        "claims that are not encoded": issuer.signed_as({"b64": False, "crit": ["b64"]}, issuer.claims()),
        "claims that are not encoded, not said to matter": issuer.signed_as({"b64": False}, issuer.claims()),
        "a number without end": issuer.signed(b'{"exp": Infinity}'),
        "no number": issuer.signed(claims[:-1] + b', "nbf": NaN}'),
        "a number beyond all doubles": issuer.signed(claims[:-1].replace(b'"exp"', b'"x"') + b', "exp": 1e400}'),
        "a lone surrogate": issuer.signed(claims[:-1] + b', "name": "\\ud800"}'),
        "something after the claims": issuer.signed(claims + b"{}"),
    }


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _signed_with_secret(issuer: OidcIssuer, secret: bytes, alg: str = "HS256") -> str:
    """Return a token with an HMAC under a key that everybody can read."""
    text = make_unsigned_token({"alg": alg, "typ": "JWT", "kid": issuer.keys[0].kid}, issuer.claims()).rpartition(".")[
        0
    ]
    digest = hmac.digest(secret, text.encode(), {"HS256": "sha256", "HS512": "sha512"}[alg])
    return f"{text}.{encode_part(digest)}"
