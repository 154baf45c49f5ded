"""A browser without scripts: it follows what the console's pages say, and accepts only well-formed ones."""

import asyncio
import functools
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeAlias, cast

import html5lib
import httpx2

from soundmark.console.context import Console
from soundmark.console.session import Session, Sessions
from soundmark.kit.http.asgi import AsgiApp
from support.console.faulty_core import FaultyCore
from support.tenancy.people import People

CONSOLE_URL = "http://127.0.0.1:8083"
CSRF_TOKEN = "csrf-token-of-the-tests"
# Makes the fields of a valid form, except for changes.
MakeFields: TypeAlias = Callable[..., dict[str, Any]]


@dataclass(frozen=True)
class PageAnswer:
    """An answer of the console."""

    response: httpx2.Response

    @property
    def status(self) -> int:
        return self.response.status_code

    @property
    def headers(self) -> httpx2.Headers:
        return self.response.headers

    @property
    def location(self) -> str:
        """Where a redirect leads, or a page that leads on by itself."""
        if self.status == 200:
            wait, _, url = (self.find(".//meta[@http-equiv='refresh']").get("content") or "").partition("; url=")
            assert wait == "0", self.text
            return url
        assert self.status in {303, 307}, self.text
        return self.headers["location"]

    @property
    def html(self) -> str:
        return self.response.text

    @functools.cached_property
    def tree(self) -> ET.Element:
        """The page's elements, without namespaces.

        Raises: html5lib's error for a page that is not well-formed; AssertionError if two elements have one id.
        """
        parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
        tree = cast("ET.Element", parser.parse(self.response.text))
        ids = Counter(each.get("id") for each in tree.findall(".//*[@id]"))
        assert {name: count for name, count in ids.items() if count > 1} == {}, "a script finds only the first"
        return tree

    @property
    def text(self) -> str:
        """What a person reads on the page, with single spaces."""
        body = self.tree.find("body")
        return "" if body is None else " ".join("".join(body.itertext()).split())

    @property
    def trouble(self) -> str | None:
        """The code of the trouble that the page shows."""
        found = self.tree.find(".//section[@id='trouble']")
        return None if found is None else found.get("data-code")

    def find(self, path: str) -> ET.Element:
        """Return the first element that an ElementTree path leads to, which must exist."""
        found = self.tree.find(path)
        assert found is not None, f"{path} is not on the page: {self.text}"
        return found

    def find_all(self, path: str) -> list[ET.Element]:
        """Return all elements that an ElementTree path leads to."""
        return self.tree.findall(path)

    @property
    def heading(self) -> str:
        """The text of the page's first heading."""
        return " ".join("".join(self.find(".//h1").itertext()).split())

    @property
    def tiles(self) -> dict[str, str]:
        """The figures of the page by their labels."""
        found = [(each.find(".//dt"), each.find(".//dd")) for each in self.find_all(".//dl[@class='tiles']/*")]
        return {
            " ".join("".join(label.itertext()).split()): " ".join("".join(value.itertext()).split())
            for label, value in found
            if label is not None and value is not None
        }

    def value(self, name: str) -> str:
        """Return what the control `name` of a form holds."""
        control = self.find(f".//*[@name='{name}']")
        if control.tag == "textarea":
            return control.text or ""
        if control.tag == "select":
            chosen = control.find("./option[@selected]")
            return str((control[0] if chosen is None else chosen).get("value"))
        return control.get("value") or ""


@dataclass
class ConsoleClient:
    """A browser of one person at the console. Its cookies live as long as it does. `core` fails as a test says."""

    app: AsgiApp
    console: Console
    core: FaultyCore
    peer: str = "127.0.0.1"
    origin: str = CONSOLE_URL
    language: str = "en"
    _client: httpx2.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        transport = httpx2.ASGITransport(app=self.app, client=(self.peer, 40000), raise_app_exceptions=False)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
        self._client = httpx2.AsyncClient(
            transport=transport, base_url=self.origin, headers={"accept-language": self.language}
        )

    @property
    def cookies(self) -> httpx2.Cookies:
        return self._client.cookies

    def other(self, **changes: Any) -> "ConsoleClient":
        """Return another browser, which nobody has signed in with."""
        return replace(self, **changes)

    def copy(self, *, at: "ConsoleClient | None" = None) -> "ConsoleClient":
        """Return another browser with copies of these cookies, at this console or where another browser is."""
        other = (at or self).other()
        other.cookies.update(self.cookies)
        return other

    def sign_in(self, session: Session) -> "ConsoleClient":
        """Put a session into this browser, as the sign-in pages do."""
        from_console = _CookieResponse()
        sessions: Sessions = self.console.sessions
        sessions.jar.write(from_console, "session", session)  # type: ignore[arg-type]  # it takes the cookies alone
        for name, value in from_console.cookies.items():
            self._client.cookies.set(name, value, domain="127.0.0.1", path="/")
        return self

    def sign_in_as_operator(self, now: datetime) -> "ConsoleClient":
        """Sign the operator in."""
        return self.sign_in(Session("operator", "operator", "operator@localhost", CSRF_TOKEN, now, True))

    def sign_in_as(self, people: People, subject_id: str, now: datetime, **claims: Any) -> "ConsoleClient":
        """Sign a person in who has logged in with a second factor, except for `claims`."""
        token = people.issuer.token(subject_id, **claims)
        has_second_factor = claims.get("acr", "2") == "2"
        email = f"{subject_id}@example.org"
        return self.sign_in(Session("oidc", subject_id, email, CSRF_TOKEN, now, has_second_factor, token))

    async def get(self, path: str, **options: Any) -> PageAnswer:
        return PageAnswer(await self._client.get(path, **options))

    async def head(self, path: str) -> PageAnswer:
        return PageAnswer(await self._client.head(path))

    async def submit(
        self, path: str, fields: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
    ) -> PageAnswer:
        """Send a form as a page of the console does; `headers` replace its own."""
        sent = {"origin": CONSOLE_URL, "sec-fetch-site": "same-origin", **(headers or {})}
        data = {"csrf_token": CSRF_TOKEN, **(fields or {})}
        return PageAnswer(await self._client.post(path, data=data, headers=sent))

    async def assert_calls_run_together(self, path: str, calls: Iterable[str]) -> None:
        """Assert that a page makes all of these calls before the first of them is answered."""
        await self.get(path)  # The names of the tenant are known from now on.
        held = [self.core.hold(call, b"{") for call in calls]
        loading = asyncio.create_task(self.get(path))
        async with asyncio.timeout(10):
            for each in held:
                await each.begun.get()
        for each in held:
            each.may_end.set()
        assert (await loading).status == 200

    async def follow(self, answer: PageAnswer) -> PageAnswer:
        """Open the page that a redirect leads to."""
        return await self.get(answer.location)


class _CookieResponse:
    """The part of a response that a cookie jar writes to."""

    def __init__(self) -> None:
        self.cookies: dict[str, str] = {}

    def set_cookie(self, name: str, value: str, **_: Any) -> None:
        self.cookies[name] = value
