"""People who sign in to the console at the issuer of our own."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.console.client import ConsoleClient, PageAnswer
from support.identity.oidc_issuer import TOKEN, OidcIssuer
from support.outside.misbehaving_server import answer

CALLBACK = "/sign-in/callback"


@dataclass
class HeldRefreshes:
    """Refreshes that wait at the issuer."""

    has_begun: asyncio.Event = field(default_factory=asyncio.Event)
    may_end: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Desk:
    """The issuer's side of logins: the person behind each code, and the refresh tokens that are still good.

    `access` and `identity` change the claims of the tokens, `answer` members of the token endpoint's answer. A refresh
    token that is used twice revokes them all, as many providers do; with `keeps_refresh_tokens` each is good for ever.
    """

    issuer: OidcIssuer
    subject_id: str = "alice"
    nonce: str = ""
    lifetime_s: int = 300
    access: dict[str, Any] = field(default_factory=dict)
    identity: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] = field(default_factory=dict)
    good: set[str] = field(default_factory=set)
    keeps_refresh_tokens: bool = False
    refreshes_count: int = 0
    latest_access_token: str = ""

    def __post_init__(self) -> None:
        self.issuer.answer_tokens = self._answer

    def _answer(self, form: dict[str, str]) -> tuple[str, Any]:
        if form["grant_type"] == "refresh_token":
            if form["refresh_token"] not in self.good:
                self.good.clear()
                return "400 Bad Request", {"error": "invalid_grant"}
            self.good.remove(form["refresh_token"])
            self.refreshes_count += 1
        refresh_token = f"refresh-{self.refreshes_count}-{len(self.issuer.token_requests)}"
        if self.keeps_refresh_tokens:
            refresh_token = form.get("refresh_token", refresh_token)
        self.good.add(refresh_token)
        now = int(self.issuer.clock.unix_s())
        tokens = {
            "token_type": "Bearer",
            "expires_in": self.lifetime_s,
            "access_token": self.issuer.token(
                self.subject_id, exp=now + self.lifetime_s, jti=refresh_token, **{"acr": "1", **self.access}
            ),
            "id_token": self.issuer.id_token(self.subject_id, **{"nonce": self.nonce, **self.identity}),
            "refresh_token": refresh_token,
        }
        self.latest_access_token = tokens["access_token"]
        return "200 OK", {name: value for name, value in {**tokens, **self.answer}.items() if value is not None}

    def hold_refreshes(self) -> "HeldRefreshes":
        """Let refreshes wait until the test releases them, and answer everything else."""
        held = HeldRefreshes()

        async def behave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            form = self.issuer.token_requests[-1]
            if form["grant_type"] == "refresh_token":
                held.has_begun.set()
                await held.may_end.wait()
            status, value = self._answer(form)
            await answer(json.dumps(value).encode(), status=status)(reader, writer)

        self.issuer.behaviour[TOKEN] = behave
        return held

    async def begin(self, browser: ConsoleClient, path: str = "/sign-in?return_to=/organizations") -> dict[str, str]:
        """Follow a link to the sign-in page, and return what the console asks the issuer for."""
        asked = read_query((await browser.get(path)).location)
        self.nonce = asked["nonce"]
        return asked

    async def sign_in(
        self, browser: ConsoleClient, path: str = "/sign-in?return_to=/organizations", *, code: str = "a-code"
    ) -> PageAnswer:
        """Sign in, and return what the console answers when the browser comes back."""
        asked = await self.begin(browser, path)
        return await self.come_back(browser, asked["state"], code=code)

    async def come_back(self, browser: ConsoleClient, state: str, **answer: str) -> PageAnswer:
        """Bring the issuer's answer to the console."""
        return await browser.get(CALLBACK, params={"state": state, **(answer or {"code": "a-code"})})


def read_query(url: str) -> dict[str, str]:
    """Return the parameters of a URL, each once."""
    parameters = parse_qs(urlsplit(url).query, strict_parsing=True)
    assert all(len(values) == 1 for values in parameters.values()), url
    return {name: values[0] for name, values in parameters.items()}
