"""The reference backend in front of a service that accepts events, and the tokens that receivers send to it."""

from typing import Any

import httpx2
import jwt
from soundmark_sdk.publisher import AsyncPublisher, Backend, ReportingTokens

from .event_service import HMAC_SECRET, EventService
from .issuer import INTEGRATION_ID, NOW, base64url, compact
from .measurements import CONSENT
from .stand_ins import FakeClock

KEY = b"a reporting key of the tests, which has more than 32 bytes"
OTHER_INTEGRATION = "int_ABCDEF0123456789abcdef"
BACKEND_URL = "http://127.0.0.1:8090"


class CountedSecret:
    """An HMAC secret that counts how often it is read."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        return HMAC_SECRET


class World:
    """A backend in front of a service that accepts events."""

    def __init__(self, events: EventService, clock: FakeClock) -> None:
        self.events, self.clock, self.secret = events, clock, CountedSecret()
        self.tokens = ReportingTokens(KEY, INTEGRATION_ID, clock=clock)
        self.publisher = AsyncPublisher(events.url, INTEGRATION_ID, self.secret, clock=clock)
        self.backend = Backend(self.publisher, self.tokens)
        self.transport = httpx2.ASGITransport(app=self.backend)
        self.client = httpx2.AsyncClient(transport=self.transport, base_url=BACKEND_URL)

    async def post(self, body: bytes, token: str | None = None, **options: Any) -> httpx2.Response:
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.tokens.issue(CONSENT) if token is None else token}",
            **options.pop("headers", {}),
        }
        return await self.client.post("/v1/events", content=body, headers=headers, **options)


def make_claims(**changes: Any) -> dict[str, Any]:
    now = int(NOW.timestamp())
    standard = {
        "iat": now,
        "exp": now + 300,
        "svc_audience_consent": True,
        "svc_audience_integration_id": INTEGRATION_ID,
        **changes,
    }
    return {name: value for name, value in standard.items() if value is not ...}


def sign_token(key: bytes = KEY, algorithm: str = "HS256", **changes: Any) -> str:
    return jwt.encode(make_claims(**changes), key, algorithm=algorithm)


def make_unsigned_token() -> str:
    return ".".join((base64url(compact({"alg": "none", "typ": "JWT"})), base64url(compact(make_claims())), ""))


SECONDS = int(NOW.timestamp())
