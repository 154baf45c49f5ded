"""Audience as it runs in production, on a real database, called over ASGI by the holder of its credential."""

import contextlib
import itertools
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from soundmark import settings as declared
from soundmark.audience import app as audience_app
from soundmark.audience.app import create_app
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.asgi import AsgiApp
from soundmark.kit.text import base64url
from support.api.core_client import Answer
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import running_lifespan
from support.processes.secret_leaks import remember_secret

CREDENTIAL = "audience-credential-of-the-tests"
MASTER_KEY = base64url.encode(bytes(range(32, 64)))
ORGANIZATION, PROJECT = "org_b2xkLXJhZGlvLWV4YW1wbA", "prj_bW9ybmluZy1zaG93LWV4YW"
CORE_KEY = {"key_id": "core-key-1", "public_key": base64url.encode(bytes(range(32)))}
OTHER_CORE_KEY = {"key_id": "core-key-2", "public_key": base64url.encode(bytes(range(1, 33)))}

_operations = itertools.count(1)
_integrations = itertools.count(1)


def new_operation_id() -> str:
    """Return the id of a new audit intent."""
    return f"aud_{next(_operations):022d}"


def audience_settings(database_url: Secret, **changes: Any) -> declared.AudienceSettings:
    """Return the settings of an Audience under test; `changes` go by field name, with values as in the environment."""
    values: dict[str, Any] = {
        "audience_database_url": database_url.reveal(),
        "audience_credential": CREDENTIAL,
        "master_key": MASTER_KEY,
        "refusal_rate_limit": "1000000",
        **changes,
    }
    for name in ("master_key", "audience_credential"):
        remember_secret(str(values[name]))
    environ = {f"SOUNDMARK_{name.upper()}": str(value) for name, value in values.items() if value is not None}
    return declared.read(declared.AudienceSettings, environ)


@dataclass
class AudienceApi:
    """A client of one Audience app, with the credential of Core unless another is given."""

    app: AsgiApp
    clock: FakeClock
    credential: str | None = CREDENTIAL
    _client: httpx2.AsyncClient = field(init=False)

    def __post_init__(self) -> None:
        transport = httpx2.ASGITransport(app=self.app, raise_app_exceptions=False)  # type: ignore[arg-type]  # httpx2 names the same protocol otherwise
        self._client = httpx2.AsyncClient(transport=transport, base_url="http://audience.test")

    async def call(self, method: str, path: str, *, operation_id: str | None = None, **options: Any) -> Answer:
        headers = httpx2.Headers(options.pop("headers", {}))
        if self.credential is not None:
            headers.setdefault("Authorization", f"Bearer {self.credential}")
        if operation_id is not None:
            headers["X-Svc-Operation-Id"] = operation_id
        response = await self._client.request(method, path, headers=headers, **options)
        return Answer(response.status_code, response.headers, response.content)

    async def create(self, *, operation_id: str | None = None, **changes: Any) -> Answer:
        """Ask for a demo integration, except for `changes`."""
        return await self.call(
            "POST",
            "/v1/integrations",
            operation_id=operation_id or new_operation_id(),
            json=integration_body(**changes),
        )

    async def make_integration(self, **changes: Any) -> "AudienceIntegration":
        """Create an integration."""
        answer = await self.create(**changes)
        assert answer.status == 201, answer.body
        return AudienceIntegration(self, answer.json["integration"], answer.json["hmac_secret"])


@dataclass(frozen=True)
class AudienceIntegration:
    """An integration and its secret, as they were created."""

    api: AudienceApi
    view: dict[str, Any]
    hmac_secret: str = field(repr=False)

    @property
    def id(self) -> str:
        identity: str = self.view["id"]
        return identity

    @property
    def query(self) -> dict[str, str]:
        return {"organization_id": self.view["organization_id"], "project_id": self.view["project_id"]}

    async def read(self, **query: str) -> Answer:
        return await self.api.call("GET", f"/v1/integrations/{self.id}", params={**self.query, **query})

    async def change(self, action: str, body: Any = None, *, operation_id: str | None = None, **query: str) -> Answer:
        """Carry out `revoke`, `secret`, `core-key` or `retention`."""
        return await self.api.call(
            "PATCH" if action == "retention" else "POST",
            f"/v1/integrations/{self.id}/{action}",
            operation_id=operation_id or new_operation_id(),
            params={**self.query, **query},
            **({} if body is None else {"json": body}),
        )


def list_private_routes() -> list[tuple[str, str]]:
    """Return the method and path of every private route, with values in place of its parameters."""
    paths = audience_app._routes(lambda _: contextlib.nullcontext()).openapi()["paths"]
    return [(method.upper(), re.sub(r"\{\w+\}", "anything", path)) for path, item in paths.items() for method in item]


def integration_body(**changes: Any) -> dict[str, Any]:
    """Return a valid body for a demo integration, except for `changes`."""
    return {
        "integration_id": f"int_{next(_integrations):022d}",
        "organization_id": ORGANIZATION,
        "project_id": PROJECT,
        "mode": "demo",
        "retention_days": 14,
        "core_key": CORE_KEY,
        "entitlement": None,
        **changes,
    }


def entitlement_body(**changes: Any) -> dict[str, Any]:
    """Return an entitlement without an end, except for `changes`."""
    return {"monthly_event_quota": 5000, "ends_at": None, "revision": 1, **changes}


@contextlib.asynccontextmanager
async def running_audience(
    settings: declared.AudienceSettings, clock: FakeClock | None = None
) -> AsyncIterator[AudienceApi]:
    """Run the production app with its lifespan, and yield a client with its credential.

    Raises: the error with which the app refuses to start.
    """
    clock = clock or FakeClock()
    app = create_app(settings, clock=clock)
    async with running_lifespan(app):
        yield AudienceApi(app, clock)
