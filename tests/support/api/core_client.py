"""A client of Core that checks every response against the published contract."""

from dataclasses import dataclass, field
from typing import Any

import httpx2

from soundmark.kit.http.asgi import AsgiApp
from support.api.core_settings import BASE_URL, OPERATOR_TOKEN
from support.api.published_contract import PublishedContract
from support.processes.fake_clock import FakeClock
from support.processes.secret_leaks import remember_secret

PROOF = {"X-Svc-Resolution-Proof": "ed25519-v1"}

_published: list[PublishedContract] = []  # Read once per process: every app of one release publishes the same.


@dataclass(frozen=True)
class Answer:
    """An HTTP response, with its JSON at hand."""

    status: int
    headers: httpx2.Headers
    body: bytes

    @property
    def json(self) -> Any:
        return httpx2.Response(200, content=self.body).json()

    @property
    def code(self) -> str:
        """Return the problem's code; the response must be a problem document."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        document = self.json
        assert document["status"] == self.status
        assert document["type"] == f"{BASE_URL}/problems/{document['code']}"
        assert document["request_id"] == self.headers["x-request-id"]
        code: str = document["code"]
        return code


@dataclass
class Api:
    """A client of one Core app, for one caller at one IP address."""

    app: AsgiApp
    clock: FakeClock
    token: str | None = OPERATOR_TOKEN
    peer: str = "127.0.0.1"
    _client: httpx2.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        transport = httpx2.ASGITransport(app=self.app, client=(self.peer, 40000), raise_app_exceptions=False)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
        self._client = httpx2.AsyncClient(transport=transport, base_url=BASE_URL)

    def other(self, *, token: str | None = OPERATOR_TOKEN, peer: str = "127.0.0.1") -> "Api":
        """Return a client of the same app for another caller."""
        return Api(self.app, self.clock, token, peer)

    async def call(self, method: str, path: str, **options: Any) -> Answer:
        """Send a request and return the response, which must be one that the published contract allows."""
        if "/platform/settings/secrets/" in path and isinstance(options.get("json"), dict):
            remember_secret(str(options["json"].get("value", "")))
        headers = httpx2.Headers(options.pop("headers", {}))
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        response = await self._client.request(method, path, headers=headers, **options)
        (await self.published()).check(response)
        return Answer(response.status_code, response.headers, response.content)

    async def published(self) -> PublishedContract:
        """Return the contract that this release publishes."""
        if not _published:
            _published.append(PublishedContract((await self._client.get("/openapi.json")).json()))
        return _published[0]

    async def get(self, path: str, **options: Any) -> Answer:
        return await self.call("GET", path, **options)

    async def post(self, path: str, **options: Any) -> Answer:
        return await self.call("POST", path, **options)

    async def patch(self, path: str, **options: Any) -> Answer:
        return await self.call("PATCH", path, **options)

    async def put(self, path: str, **options: Any) -> Answer:
        return await self.call("PUT", path, **options)

    async def delete(self, path: str, **options: Any) -> Answer:
        return await self.call("DELETE", path, **options)

    async def make_organization(self, name: str = "Radio Nordlicht") -> str:
        answer = await self.post("/v1/organizations", json={"name": name})
        assert answer.status == 201, answer.body
        identity: str = answer.json["id"]
        return identity

    async def make_project(self, organization_id: str, name: str = "Morning show") -> str:
        answer = await self.post("/v1/projects", json={"organization_id": organization_id, "name": name})
        assert answer.status == 201, answer.body
        identity: str = answer.json["id"]
        return identity

    async def resolve(self, token: str, *, proof: bool = True, **options: Any) -> Answer:
        headers = {**(PROOF if proof else {}), **options.pop("headers", {})}
        return await self.get(f"/v1/resolve/{token}", headers=headers, **options)


def pointers(answer: Answer) -> list[str]:
    """Return what a body that was refused got wrong, as JSON pointers."""
    assert (answer.status, answer.code) == (422, "validation_failed"), answer.body
    return [error["pointer"] for error in answer.json["errors"]]
