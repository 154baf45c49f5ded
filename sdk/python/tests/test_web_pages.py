"""Pages of allowed origins get reporting tokens and readable answers; all others get what they got before."""

from typing import Any

import httpx2
import pytest
from soundmark_sdk.publisher import WebPages, from_environment

from .event_service import HMAC_SECRET
from .issuer import INTEGRATION_ID
from .reference_backend import BACKEND_URL, KEY, OTHER_INTEGRATION, World

PAGE = "https://console.example.org"
AGREED = {"integration_id": INTEGRATION_ID, "consent": True}


def open_client(world: World, origin: str | None = PAGE) -> httpx2.AsyncClient:
    app = WebPages(world.backend, world.tokens, [PAGE], clock=world.clock)
    headers = {} if origin is None else {"origin": origin}
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=BACKEND_URL, headers=headers)


async def test_a_page_reports_with_a_token_of_a_person_who_agreed(world: World, body: bytes) -> None:
    async with open_client(world) as client:
        issued = await client.post("/v1/reporting-tokens", json=AGREED)
        assert issued.status_code == 201
        assert issued.json()["expires_in"] == 300
        assert issued.headers["cache-control"] == "no-store"
        token = issued.json()["token"]
        world.tokens.check(token)
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        answer = await client.post("/v1/events", content=body, headers=headers)
    assert (answer.status_code, answer.json()["status"]) == (201, "recorded")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert world.events.bodies == [body]


@pytest.mark.parametrize(
    "asked",
    [
        {"integration_id": INTEGRATION_ID},
        {"integration_id": INTEGRATION_ID, "consent": False},
        {"integration_id": INTEGRATION_ID, "consent": 1},
        {"integration_id": OTHER_INTEGRATION, "consent": True},
        {**AGREED, "account": "ada"},
        [AGREED],
    ],
)
async def test_without_a_consent_to_this_integration_there_is_no_token(world: World, asked: Any) -> None:
    async with open_client(world) as client:
        answer = await client.post("/v1/reporting-tokens", json=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [(b"{", "application/json", 400), (b"[" * 9000, "application/json", 400), (b"{}", "text/plain", 415)],
)
async def test_a_malformed_request_gets_no_token(world: World, content: bytes, media_type: str, status: int) -> None:
    async with open_client(world) as client:
        answer = await client.post("/v1/reporting-tokens", content=content, headers={"content-type": media_type})
        assert answer.status_code == status
        assert (await client.get("/v1/reporting-tokens")).status_code == 405


@pytest.mark.parametrize("origin", [None, "https://evil.example", "null", f"{PAGE}:444"])
async def test_another_origin_gets_no_token_and_may_read_nothing(world: World, body: bytes, origin: str | None) -> None:
    async with open_client(world, origin) as client:
        assert (await client.post("/v1/reporting-tokens", json=AGREED)).status_code == 403
        preflight = await client.options("/v1/events")
        assert preflight.status_code == 405
        answer = await client.post("/v1/events", content=body)
    assert answer.status_code == 401
    assert "access-control-allow-origin" not in {*answer.headers, *preflight.headers}


async def test_a_preflight_of_a_page_is_answered(world: World) -> None:
    async with open_client(world) as client:
        answer = await client.options("/v1/events", headers={"access-control-request-method": "POST"})
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-headers"] == "authorization, content-type"
    assert answer.headers["vary"] == "Origin"


async def test_other_paths_are_those_of_the_backend(world: World) -> None:
    async with open_client(world) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.post("/v1/other")).status_code == 404


@pytest.mark.parametrize("origin", ["http://example.org", "https://a.example/path", "*", "https://user@a.example", ""])
def test_an_origin_that_could_be_forged_or_misread_is_refused(world: World, origin: str) -> None:
    with pytest.raises(ValueError, match="An origin is https"):
        WebPages(world.backend, world.tokens, [origin])


def test_the_environment_names_the_origins() -> None:
    environment = {
        "PUBLISHER_AUDIENCE_URL": "https://soundmark.example.org",
        "PUBLISHER_INTEGRATION_ID": INTEGRATION_ID,
        "PUBLISHER_HMAC_SECRET": HMAC_SECRET,
        "PUBLISHER_REPORTING_KEY": KEY.decode(),
    }
    origins = f"{PAGE} http://127.0.0.1:8083"
    assert isinstance(from_environment({**environment, "PUBLISHER_WEB_ORIGINS": origins}), WebPages)
    with pytest.raises(ValueError, match="PUBLISHER_WEB_ORIGINS"):
        from_environment({**environment, "PUBLISHER_WEB_ORIGINS": "http://example.org"})
