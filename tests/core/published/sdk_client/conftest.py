"""A Core on a real socket, where people sign in and call it with `soundmark_sdk.client`."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2
import pytest
from soundmark_sdk.client import (
    AsyncClient,
    Intent,
    IssueRequest,
)
from support.api.core_settings import core_settings
from support.identity.oidc_issuer import CLIENT_ID, OidcIssuer, running_issuer
from support.processes.fake_clock import FakeClock
from support.processes.running_apps import served_in_thread

from soundmark.core.app import create_app
from soundmark.kit.crypto.secret import Secret


class Recording(httpx2.AsyncHTTPTransport):
    """A transport that records the requested routes."""

    def __init__(self, requested: set[str]) -> None:
        super().__init__()
        self._asked = requested

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._asked.add(f"{request.method} {request.url.path}")
        return await super().handle_async_request(request)


@dataclass(frozen=True)
class World:
    """A Core on a real socket where people sign in."""

    url: str
    issuer: OidcIssuer
    requested: set[str] = field(default_factory=set)
    attempts_max: int = 6

    def client(self, subject_id: str, **claims: Any) -> AsyncClient:
        """Return a person's client; each request carries its own token, as in a real session."""
        tokens = {"email": f"{subject_id}@example.org", **claims}
        return AsyncClient(
            self.url,
            lambda: self.issuer.token(subject_id, **tokens),
            attempts_max=self.attempts_max,
            transport=Recording(self.requested),
        )

    async def document(self) -> dict[str, Any]:
        # Rendering it takes a second of a processor that other tests use, too.
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            document: dict[str, Any] = (await client.get(f"{self.url}/openapi.json")).json()
            return document

    async def keys(self) -> bytes:
        async with httpx2.AsyncClient(trust_env=False) as client:
            return (await client.get(f"{self.url}/v1/keys")).content


@dataclass(frozen=True)
class Tenant:
    """An organisation with a project, and its owner's client."""

    client: AsyncClient
    organization_id: str
    project_id: str

    def issue_request(self, **changes: Any) -> IssueRequest:
        body: dict[str, Any] = {
            "organization_id": self.organization_id,
            "project_id": self.project_id,
            "issuer": "Radio Nordlicht",
            "expires_at": datetime.now(UTC) + timedelta(hours=1),
            "intent": Intent("link", "open", {"url": "https://example.org/é", "n": [1, 2.5, None, True]}),
            **changes,
        }
        return IssueRequest(**body)


@pytest.fixture
async def world(spare_database_url: Secret, audio_url: str, timely_audience_url: str) -> AsyncIterator[World]:
    """A Core on a socket, and people who sign in to it."""
    async with running_issuer(FakeClock()) as issuer:
        urls = {"audio_url": audio_url, "audience_url": timely_audience_url}
        settings = core_settings(spare_database_url, **urls, oidc_issuer=issuer.url, oidc_client_id=CLIENT_ID)
        with served_in_thread(create_app(settings)) as url:
            yield World(url, issuer)


@pytest.fixture
async def tenant(world: World) -> AsyncIterator[Tenant]:
    """An organisation with one project."""
    async with world.client("owner", realm_access={"roles": ["svc_platform_admin"]}) as client:
        organization = await client.organizations.create("Radio Nordlicht")
        project = await client.projects.create("Morning show", organization_id=organization.id)
        yield Tenant(client, organization.id, project.id)
