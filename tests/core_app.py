"""Core as it runs in production, on a real database and a real audio component, driven over ASGI."""

import asyncio
import base64
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import httpx2
import psycopg
import uvicorn
from leaks import remember
from published import Published

from soundmark import settings as declared
from soundmark.audio.app import create_app as create_audio_app
from soundmark.core.app import create_app
from soundmark.kit import sockets
from soundmark.kit.clock import SystemClock
from soundmark.kit.http import AsgiApp
from soundmark.kit.secret import Secret
from soundmark.kit.timestamps import format_timestamp

BASE_URL = "http://core.test"
OPERATOR_TOKEN = "xop_" + "o" * 43
AUDIO_CREDENTIAL = "audio-credential-of-the-tests"
AUDIENCE_CREDENTIAL = "audience-credential-of-the-tests"
MASTER_KEY = base64.urlsafe_b64encode(bytes(range(32))).decode().rstrip("=")
INTENT = {"type": "link", "action": "open", "resource": {"url": "https://example.org/ä", "n": [1, 2.5, None, True]}}
PROOF = {"X-Svc-Resolution-Proof": "ed25519-v1"}

T = TypeVar("T")

_published: list[Published] = []  # Read once in a process: it is the same for every app of one release.


class FakeClock(SystemClock):
    """The machine's clocks, moved on command."""

    def __init__(self) -> None:
        self.shift = timedelta()
        self.frozen_at: datetime | None = None
        self._monotonic_shift_s = 0.0

    def now(self) -> datetime:
        return (self.frozen_at or super().now()) + self.shift

    def unix_s(self) -> float:
        return self.now().timestamp()

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self._monotonic_shift_s

    def advance(self, **delta: float) -> None:
        """Move both clocks on; a negative step moves the wall clock only, as a real one would jump."""
        step = timedelta(**delta)
        self.shift += step
        self._monotonic_shift_s += max(0.0, step.total_seconds())

    def reset(self) -> None:
        """Let the wall clock tell the true time again; the other one cannot go back."""
        self.shift = timedelta()
        self.frozen_at = None

    def freeze(self) -> datetime:
        """Stop the wall clock at a whole second, which is answered."""
        self.frozen_at = datetime.now(UTC).replace(microsecond=0)
        self.shift = timedelta()
        return self.frozen_at


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, with its JSON at hand."""

    status: int
    headers: httpx2.Headers
    body: bytes

    @property
    def json(self) -> Any:
        return httpx2.Response(200, content=self.body).json()

    @property
    def code(self) -> str:
        """The problem's code, of an answer that must be a problem document."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        document = self.json
        assert document["status"] == self.status
        assert document["type"] == f"{BASE_URL}/problems/{document['code']}"
        assert document["request_id"] == self.headers["x-request-id"]
        code: str = document["code"]
        return code


@dataclass
class Api:
    """A client of one Core app as one caller from one address."""

    app: AsgiApp
    clock: FakeClock
    token: str | None = OPERATOR_TOKEN
    peer: str = "127.0.0.1"
    _client: httpx2.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        transport = httpx2.ASGITransport(app=self.app, client=(self.peer, 40000), raise_app_exceptions=False)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
        self._client = httpx2.AsyncClient(transport=transport, base_url=BASE_URL)

    def other(self, *, token: str | None = OPERATOR_TOKEN, peer: str = "127.0.0.1") -> "Api":
        """The same app as somebody else sees it."""
        return Api(self.app, self.clock, token, peer)

    async def call(self, method: str, path: str, **options: Any) -> Answer:
        """The answer, which is one that the published contract knows."""
        if "/platform/settings/secrets/" in path and isinstance(options.get("json"), dict):
            remember(str(options["json"].get("value", "")))
        headers = httpx2.Headers(options.pop("headers", {}))
        if self.token is not None:
            headers.setdefault("Authorization", f"Bearer {self.token}")
        response = await self._client.request(method, path, headers=headers, **options)
        (await self.published()).check(response)
        return Answer(response.status_code, response.headers, response.content)

    async def published(self) -> Published:
        """The contract, as this release publishes it."""
        if not _published:
            _published.append(Published((await self._client.get("/openapi.json")).json()))
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

    async def given_organization(self, name: str = "Radio Nordlicht") -> str:
        answer = await self.post("/v1/organizations", json={"name": name})
        assert answer.status == 201, answer.body
        identity: str = answer.json["id"]
        return identity

    async def given_project(self, organization_id: str, name: str = "Morning show") -> str:
        answer = await self.post("/v1/projects", json={"organization_id": organization_id, "name": name})
        assert answer.status == 201, answer.body
        identity: str = answer.json["id"]
        return identity

    async def given_tenant(self) -> "Tenant":
        organization_id = await self.given_organization()
        return Tenant(self, organization_id, await self.given_project(organization_id))

    async def resolve(self, token: str, *, proof: bool = True, **options: Any) -> Answer:
        headers = {**(PROOF if proof else {}), **options.pop("headers", {})}
        return await self.get(f"/v1/resolve/{token}", headers=headers, **options)


@dataclass(frozen=True)
class Tenant:
    """An organisation with one project, owned by the api's caller."""

    api: Api
    organization_id: str
    project_id: str

    @property
    def query(self) -> dict[str, str]:
        return {"organization_id": self.organization_id}

    def wanted_code(self, **changes: Any) -> dict[str, Any]:
        """A valid issuance body, but for `changes`."""
        return {
            "organization_id": self.organization_id,
            "project_id": self.project_id,
            "issuer": "Radio Nordlicht",
            "expires_at": format_timestamp(self.api.clock.now() + timedelta(days=1)),
            "intent": INTENT,
            **changes,
        }

    async def given_code(self, *, lifetime_s: float = 86400, **changes: Any) -> dict[str, Any]:
        expires_at = format_timestamp(self.api.clock.now() + timedelta(seconds=lifetime_s))
        answer = await self.api.post("/v1/codes", json=self.wanted_code(expires_at=expires_at, **changes))
        assert answer.status == 201, answer.body
        code: dict[str, Any] = answer.json
        return code

    def wanted_campaign(self, **changes: Any) -> dict[str, Any]:
        """A valid body for a campaign, but for `changes`."""
        return {**self.query, "project_id": self.project_id, "name": "Tonight", **changes}

    async def given_campaign(self, name: str = "Tonight", **changes: Any) -> dict[str, Any]:
        """An active campaign, open unless `changes` say otherwise."""
        answer = await self.api.post("/v1/campaigns", json=self.wanted_campaign(name=name, **changes))
        assert answer.status == 201, answer.body
        campaign: dict[str, Any] = answer.json
        return campaign

    async def given_quota(self, rival: "Rival", monthly_code_quota: int) -> None:
        """The organisation has a plan that allows so many Codes a month."""
        plan_id = f"plan_of_{monthly_code_quota}"
        await rival.run(
            "INSERT INTO plans (id, name, product, monthly_code_quota, active) VALUES (%s, %s, 'codes', %s, true)"
            " ON CONFLICT DO NOTHING",
            plan_id,
            plan_id,
            monthly_code_quota,
        )
        await rival.run(
            "UPDATE code_entitlements SET plan_id = %s WHERE organization_id = %s", plan_id, self.organization_id
        )

    def wanted_key(self, **changes: Any) -> dict[str, Any]:
        """A valid body for a server key, but for `changes`."""
        return {
            "organization_id": self.organization_id,
            "project_id": self.project_id,
            "scopes": ["codes:read", "codes:write"],
            **changes,
        }

    async def given_key(self, **changes: Any) -> dict[str, Any]:
        answer = await self.api.post("/v1/api-keys", json=self.wanted_key(**changes))
        assert answer.status == 201, answer.body
        key: dict[str, Any] = answer.json
        return key

    def wanted_integration(self, **changes: Any) -> dict[str, Any]:
        """A valid body for an Audience integration, but for `changes`."""
        return {**self.query, "project_id": self.project_id, "mode": "demo", "retention_days": 14, **changes}

    async def given_integration(self, **changes: Any) -> dict[str, Any]:
        answer = await self.api.post("/v1/audience/integrations", json=self.wanted_integration(**changes))
        assert answer.status == 201, answer.body
        integration: dict[str, Any] = answer.json
        remember(integration["hmac_secret"])
        return integration

    async def given_entitlement(
        self, rival: "Rival", mode: str = "contract", *, monthly_events: int = 5000, ends_at: datetime | None = None
    ) -> None:
        """The organisation may measure in the mode, as far as Core knows."""
        await rival.run(
            "INSERT INTO audience_entitlements VALUES (%s, %s, %s, %s, 1, now())",
            self.organization_id,
            mode,
            monthly_events,
            ends_at,
        )

    async def change_integration(self, action: str, integration_id: str, *, json: Any = None) -> Answer:
        """`revoke`, `secret`, `retention` or `core-key`, in this project."""
        return await self.api.call(
            "PATCH" if action == "retention" else "POST",
            f"/v1/audience/integrations/{integration_id}/{action}",
            params=self.in_project,
            **({} if json is None else {"json": json}),
        )

    @property
    def in_project(self) -> dict[str, str]:
        return {**self.query, "project_id": self.project_id}

    def wanted_invitation(self, **changes: Any) -> dict[str, Any]:
        """A valid invitation body, but for `changes`."""
        return {"organization_id": self.organization_id, "email": "ada@example.org", "role": "member", **changes}

    async def given_invitation(self, **changes: Any) -> dict[str, Any]:
        answer = await self.api.post("/v1/member-invitations", json=self.wanted_invitation(**changes))
        assert answer.status == 201, answer.body
        invitation: dict[str, Any] = answer.json
        return invitation

    def with_key(self, key: dict[str, Any]) -> "Tenant":
        """The same tenant, as the server with this key sees it."""
        return Tenant(self.api.other(token=key["secret"], peer="203.0.113.9"), self.organization_id, self.project_id)

    async def given_member(self, rival: "Rival", subject_id: str, role: str) -> None:
        """A person with a role, as if by an invitation."""
        await rival.run(
            "INSERT INTO members (organization_id, subject_id, email, role, created_at) VALUES (%s, %s, %s, %s, %s)",
            self.organization_id,
            subject_id,
            f"{subject_id}@example.org",
            role,
            self.api.clock.now(),
        )

    async def revoke(self, xr_id: str) -> Answer:
        return await self.api.post(f"/v1/codes/{xr_id}/revoke", params=self.query)


def core_settings(database_url: Secret, **changes: Any) -> declared.CoreSettings:
    """The settings of a Core under test; `changes` by field name, as they would stand in the environment."""
    values: dict[str, Any] = {
        "base_url": BASE_URL,
        "core_database_url": database_url.reveal(),
        "master_key": MASTER_KEY,
        "audio_url": "http://127.0.0.1:9",
        "audio_credential": AUDIO_CREDENTIAL,
        "audience_url": "http://127.0.0.1:9",
        "audience_credential": AUDIENCE_CREDENTIAL,
        "operator_token": OPERATOR_TOKEN,
        "resolve_rate_limit": "1000000",
        "refusal_rate_limit": "1000000",
        "private_timeout_s": "10",
        **changes,
    }
    for name in ("master_key", "audio_credential", "audience_credential", "smtp_password"):
        remember(str(values.get(name) or ""))
    environ = {f"SOUNDMARK_{name.upper()}": str(value) for name, value in values.items() if value is not None}
    return declared.read(declared.CoreSettings, environ)


def jobs_settings(database_url: Secret, **changes: str) -> declared.CoreJobsSettings:
    """The settings of Core's worker under test; `changes` by the setting's name without prefix."""
    given = {
        "CORE_DATABASE_URL": database_url.reveal(),
        "MASTER_KEY": MASTER_KEY,
        "BASE_URL": BASE_URL,
        "AUDIENCE_URL": "http://127.0.0.1:9",
        "AUDIENCE_CREDENTIAL": AUDIENCE_CREDENTIAL,
        "PRIVATE_TIMEOUT_S": "10",
        **changes,
    }
    environ = {f"SOUNDMARK_{name}": value for name, value in given.items()}
    return declared.read(declared.CoreJobsSettings, environ)


@contextlib.asynccontextmanager
async def running_core(settings: declared.CoreSettings, clock: FakeClock | None = None) -> AsyncIterator[Api]:
    """The production app with its lifespan running, and a client that is the operator.

    Raises: what the app refuses to start with.
    """
    clock = clock or FakeClock()
    app = create_app(settings, clock=clock)
    async with alive(app):
        yield Api(app, clock)


@contextlib.asynccontextmanager
async def alive(app: AsgiApp) -> AsyncIterator[None]:
    """Its lifespan runs, from start to stop.

    Raises: what the app refuses to start with.
    """
    to_app: asyncio.Queue[dict[str, str]] = asyncio.Queue()
    from_app: asyncio.Queue[Any] = asyncio.Queue()
    lifespan = asyncio.create_task(app({"type": "lifespan", "asgi": {}, "state": {}}, to_app.get, from_app.put))  # type: ignore[arg-type]  # the protocol's loose dicts
    await to_app.put({"type": "lifespan.startup"})
    started = await from_app.get()
    if started["type"] == "lifespan.startup.failed":
        await lifespan  # Raises why.
    assert started["type"] == "lifespan.startup.complete", started
    try:
        yield
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        await lifespan


class _AnnouncedServer(uvicorn.Server):
    """uvicorn that says when it listens, or that it never will."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.decided = threading.Event()

    async def startup(self, sockets: list[Any] | None = None) -> None:
        try:
            await super().startup(sockets=sockets)
        finally:
            self.decided.set()


@contextlib.contextmanager
def served_in_thread(app: Any) -> Iterator[str]:
    """An ASGI app on a real loopback socket that takes connections; its address."""
    server = _AnnouncedServer(uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=2))
    with sockets.shared_socket("127.0.0.1", 0) as sock:
        thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
        thread.start()
        try:
            assert server.decided.wait(30), "the app must start"
            assert server.started, "the app refused to start"
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(10)
            assert not thread.is_alive(), "the server must stop"


def audio_component() -> contextlib.AbstractContextManager[str]:
    """The real audio component on a real socket."""
    return served_in_thread(
        create_audio_app(declared.read(declared.AudioSettings, {"SOUNDMARK_AUDIO_CREDENTIAL": AUDIO_CREDENTIAL}))
    )


# Two Cores that begin to seal the same new organisation's log wait for each other for a moment, whatever is tested.
_WAITS: Final = (
    "datname = current_database() AND wait_event_type = 'Lock' AND strpos(query, 'INSERT INTO audit_heads') = 0"
)


class Rival:
    """A second connection of somebody who may everything: alters rows, holds locks, and knows who waits for them."""

    def __init__(self, url: Secret) -> None:
        self._url = url

    async def run(self, statement: str, *params: Any) -> int:
        """Carry out one statement; the number of rows it touched."""
        async with await psycopg.AsyncConnection.connect(self._url.reveal(), autocommit=True) as connection:
            cursor = await connection.execute(statement.encode(), params)
            return cursor.rowcount

    async def rows(self, statement: str, *params: Any) -> list[Any]:
        async with await psycopg.AsyncConnection.connect(self._url.reveal(), autocommit=True) as connection:
            cursor = await connection.execute(statement.encode(), params)
            return await cursor.fetchall()

    @contextlib.asynccontextmanager
    async def holding(self, statement: str, *params: Any) -> AsyncIterator[None]:
        """Hold the locks that one statement takes, until the block ends."""
        async with await psycopg.AsyncConnection.connect(self._url.reveal()) as connection:
            await connection.execute(statement.encode(), params)
            yield
            await connection.rollback()

    @contextlib.asynccontextmanager
    async def committing(self, statement: str, *params: Any) -> AsyncIterator[None]:
        """What one statement changes, not committed until the block ends."""
        async with await psycopg.AsyncConnection.connect(self._url.reveal()) as connection:
            await connection.execute(statement.encode(), params)
            yield
            await connection.commit()

    async def end_whoever_waits(self) -> int:
        """Cut the connection of who waits for a lock, as if its process had died; how many did, one at least.

        What runs beside the requests, such as the sealing of the audit log, may wait there too, and begins again.
        """
        ended = await self.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {_WAITS}")
        assert ended >= 1
        return ended

    async def audited(self, action: str) -> list[tuple[str, str | None, dict[str, Any]]]:
        """Who did `action`, in which project and with what metadata, oldest first."""
        statement = "SELECT actor_type, actor_id, project_id, metadata FROM audit_entries WHERE action = %s ORDER BY {}"
        rows = await self.rows(statement.format("created_at"), action)
        return [(f"{kind} {actor}", project_id, json.loads(metadata)) for kind, actor, project_id, metadata in rows]

    async def while_waiting(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """The task of `work`, once it waits for a lock."""
        task = asyncio.create_task(work)
        await self.until_someone_waits()
        return task

    async def until_someone_waits(self, count: int = 1) -> None:
        """`count` others wait for locks in this database."""
        async with asyncio.timeout(60):
            while len(await self.rows(f"SELECT 1 FROM pg_stat_activity WHERE {_WAITS}")) < count:  # noqa: ASYNC110 - the event happens in PostgreSQL
                await asyncio.sleep(0.005)
