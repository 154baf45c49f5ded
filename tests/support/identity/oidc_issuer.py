"""An OpenID Connect issuer on a real socket that makes keys and tokens, and misbehaves on command."""

import asyncio
import base64
import contextlib
import functools
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from support.outside.misbehaving_server import Behaviour, answer
from support.processes.fake_clock import FakeClock

CLIENT_ID = "console"
REALM = "/realms/soundmark"
DISCOVERY = f"{REALM}/.well-known/openid-configuration"
JWKS = f"{REALM}/certs"
TOKEN = f"{REALM}/token"
REVOCATION = f"{REALM}/revoke"


@dataclass(frozen=True)
class IssuerKey:
    """A key pair of an issuer; `alg` is the algorithm that it signs with."""

    kid: str
    alg: str
    private: Any = field(repr=False)

    @property
    def jwk(self) -> dict[str, Any]:
        """Return the public half, as issuers publish it."""
        public = self.private.public_key()
        kind = {"RS256": RSAAlgorithm, "PS256": RSAAlgorithm, "ES256": ECAlgorithm, "EdDSA": OKPAlgorithm}[self.alg]
        members: dict[str, Any] = kind.to_jwk(public, as_dict=True)  # type: ignore[attr-defined]  # each has it
        members.pop("key_ops", None)
        return {**members, "kid": self.kid, "alg": self.alg, "use": "sig"}


@functools.cache
def _rsa(number: int, bits: int = 2048) -> rsa.RSAPrivateKey:
    assert number >= 0, "another number is another key"
    return rsa.generate_private_key(65537, bits)


def make_issuer_key(kid: str, alg: str = "RS256", number: int = 0) -> IssuerKey:
    """Return a key pair; the RSA key of each `number` is made once, because that takes long."""
    if alg in {"RS256", "PS256"}:
        return IssuerKey(kid, alg, _rsa(number))
    private = ec.generate_private_key(ec.SECP256R1()) if alg == "ES256" else ed25519.Ed25519PrivateKey.generate()
    return IssuerKey(kid, alg, private)


def _sign(payload: bytes, by: IssuerKey, **header: Any) -> str:
    headers = {name: value for name, value in {"kid": by.kid, **header}.items() if value is not None}
    return jwt.PyJWS().encode(payload, by.private, by.alg, headers=headers)


# People call many operations within one second of their clock, and a signature by RSA takes as long as some calls.
_sign_once = functools.lru_cache(maxsize=64)(_sign)


AnswerTokens = Callable[[dict[str, str]], tuple[str, Any]]


def refuse_grant(_: dict[str, str]) -> tuple[str, Any]:
    """Answer as a token endpoint does that knows neither the code nor the refresh token."""
    return "400 Bad Request", {"error": "invalid_grant"}


class OidcIssuer:
    """An issuer whose documents, keys and behaviour a test changes while it runs."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.url = ""
        self.keys = [make_issuer_key("first")]
        self.jwks: dict[str, Any] | None = None  # Published in place of what `keys` say.
        self.discovery: dict[str, Any] = {}  # Published beside, or in place of, what is right.
        self.behaviour: dict[str, Behaviour] = {}  # By path, in place of an answer.
        self.requested: list[str] = []
        self.token_requests: list[dict[str, str]] = []
        self.revocations: list[dict[str, str]] = []
        self.answer_tokens: AnswerTokens = refuse_grant
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    def reset(self) -> None:
        """Behave well again, with the first key."""
        self.keys, self.jwks, self.discovery, self.behaviour = [make_issuer_key("first")], None, {}, {}
        self.requested.clear()
        self.token_requests.clear()
        self.revocations.clear()
        self.answer_tokens = refuse_grant

    def claims(self, subject_id: str = "alice", **changes: Any) -> dict[str, Any]:
        """Return the claims of an access token for the console after a login with a second factor; None removes one."""
        now = int(self.clock.unix_s())
        claims = {
            "iss": self.url,
            "sub": subject_id,
            "azp": CLIENT_ID,
            "aud": "account",
            "typ": "Bearer",
            "iat": now,
            "exp": now + 300,
            "acr": "2",
            "email": f"{subject_id}@example.org",
            "email_verified": True,
            **changes,
        }
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, subject_id: str = "alice", *, by: IssuerKey | None = None, **changes: Any) -> str:
        """Return an access token signed with the newest key, or with another."""
        return _sign_once(json.dumps(self.claims(subject_id, **changes)).encode(), by or self.keys[-1])

    def signed(self, claims: Any, *, by: IssuerKey | None = None, **header: Any) -> str:
        """Sign any claims, or the bytes that stand for them; a header of None is left out."""
        payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        return _sign(payload, by or self.keys[-1], **header)

    def signed_as(self, header: dict[str, Any], claims: Any, *, by: IssuerKey | None = None) -> str:
        """Sign any claims under exactly this header, which may replace `alg` and `kid`."""
        by = by or self.keys[-1]
        whole = {"alg": by.alg, "kid": by.kid, **header}
        return self.signed_bytes(json.dumps(whole).encode(), claims, by=by)

    def signed_bytes(self, header: bytes, claims: Any, *, by: IssuerKey | None = None) -> str:
        """Sign any bytes as header and claims; the signature is genuine."""
        by = by or self.keys[-1]
        payload = claims if isinstance(claims, bytes) else json.dumps(claims).encode()
        text = f"{encode_part(header)}.{encode_part(payload)}"
        algorithm = jwt.get_algorithm_by_name(by.alg)
        return f"{text}.{encode_part(algorithm.sign(text.encode(), by.private))}"

    def id_token(self, subject_id: str, **claims: Any) -> str:
        """Return an ID token for the console after a login with a password; None removes a claim."""
        return self.signed(self.claims(subject_id, **{"aud": CLIENT_ID, "typ": "ID", "acr": "1", **claims}))

    @property
    def readings_count(self) -> int:
        """Return how often the keys were requested."""
        return self.requested.count(JWKS)

    async def start(self) -> None:
        port = int(self.url.partition("//")[2].partition("/")[0].partition(":")[2]) if self.url else 0
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{REALM}"

    async def stop(self) -> None:
        assert self._server is not None, "it was started"
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @contextlib.asynccontextmanager
    async def down(self) -> AsyncIterator[None]:
        """Stop listening until the block ends."""
        await self.stop()
        yield
        await self.start()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a connection is served by a task"
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].decode()
            self.requested.append(path)
            if path in {TOKEN, REVOCATION}:
                requests = self.token_requests if path == TOKEN else self.revocations
                requests.append(await _read_token_request(reader, head.decode()))
            await (self.behaviour.get(path) or self._proper(path))(reader, writer)
        writer.close()

    def _proper(self, path: str) -> Behaviour:
        if path == TOKEN:
            status, value = self.answer_tokens(self.token_requests[-1])
            return answer(json.dumps(value).encode(), status=status)
        if path == REVOCATION:
            return answer(b"")
        documents = {
            DISCOVERY: {
                "issuer": self.url,
                "jwks_uri": self.url.removesuffix(REALM) + JWKS,
                "authorization_endpoint": f"{self.url}/auth",
                "token_endpoint": f"{self.url}/token",
                "end_session_endpoint": f"{self.url}/logout",
                "revocation_endpoint": f"{self.url}/revoke",
                "claims_parameter_supported": True,
                **self.discovery,
            },
            JWKS: self.jwks if self.jwks is not None else {"keys": [one.jwk for one in self.keys]},
        }
        if path not in documents:
            return answer(b"{}", status="404 Not Found")
        return answer(json.dumps(documents[path]).encode())


async def _read_token_request(reader: asyncio.StreamReader, head: str) -> dict[str, str]:
    """Return the fields of a form, and the header `authorization` where there is one."""
    headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    form = dict(parse_qsl((await reader.readexactly(int(headers["content-length"]))).decode()))
    shown = [line.partition(": ")[2] for line in head.split("\r\n") if line.lower().startswith("authorization:")]
    return form | ({"authorization": shown[0]} if shown else {})


def make_unsigned_token(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """Put a token together by hand."""
    return ".".join(map(encode_part, (json.dumps(header).encode(), json.dumps(claims).encode(), signature)))


def encode_part(part: bytes) -> str:
    """Encode a part of a token: base64url without padding."""
    return base64.urlsafe_b64encode(part).decode().rstrip("=")


@contextlib.asynccontextmanager
async def running_issuer(clock: FakeClock) -> AsyncIterator[OidcIssuer]:
    """Run an issuer."""
    issuer = OidcIssuer(clock)
    await issuer.start()
    try:
        yield issuer
    finally:
        await issuer.stop()
