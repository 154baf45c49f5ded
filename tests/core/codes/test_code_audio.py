"""`GET /v1/codes/{xr_id}/audio`: which Codes are rendered, and how. tests/audio checks the sound."""

from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant

from soundmark.kit.crypto.secret import Secret


async def render(tenant: Tenant, code: dict[str, Any], **query: Any) -> Answer:
    return await tenant.api.get(f"/v1/codes/{code['xr_id']}/audio", params={**tenant.query, **query})


async def test_the_sound_carries_the_stored_frame(tenant: Tenant) -> None:
    """The same each time, another one for another Code or protocol; protocol 4 by default."""
    one, other = await tenant.make_code(), await tenant.make_code()
    heard = {protocol: (await render(tenant, one, protocol=protocol)).body for protocol in "345"}
    assert len(set(heard.values())) == 3
    assert (await render(tenant, one)).body == heard["4"]
    assert (await render(tenant, other)).body != heard["4"]


async def test_the_answer_is_a_file_that_is_not_cached(tenant: Tenant) -> None:
    code = await tenant.make_code()
    answer = await render(tenant, code)
    assert (answer.status, answer.headers["content-type"]) == (200, "audio/wav")
    assert answer.headers["content-disposition"] == f'attachment; filename="{code["xr_id"]}.wav"'
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("protocol", ["0", "1", "2", "6", "34", "", "04", "+4", " 4", "4.0", "-4", "fast", "４", "\0"])
async def test_another_protocol_is_refused(tenant: Tenant, protocol: str) -> None:
    answer = await render(tenant, await tenant.make_code(), protocol=protocol)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == [("query", "/protocol")]


async def test_a_code_is_rendered_until_the_millisecond_it_expires(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    code = await tenant.make_code(lifetime_s=60)
    api.clock.advance(seconds=59.999)
    assert (await render(tenant, code)).status == 200
    api.clock.advance(seconds=0.001)
    answer = await render(tenant, code)
    assert (answer.status, answer.code) == (409, "code_not_active")


async def test_a_revoked_code_is_not_rendered(api: Api, tenant: Tenant) -> None:
    """Both before and after its own expiry."""
    code = await tenant.make_code(lifetime_s=60)
    await tenant.revoke(code["xr_id"])
    for seconds in (0, 61):
        api.clock.advance(seconds=seconds)
        answer = await render(tenant, code)
        assert (answer.status, answer.code) == (409, "code_not_active")


async def test_expiry_is_judged_after_the_code_was_read(api: Api, tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code(lifetime_s=60)
    async with rival.holding("LOCK TABLE codes IN ACCESS EXCLUSIVE MODE"):
        rendering = await rival.while_waiting(render(tenant, code))
        api.clock.advance(seconds=61)
    assert (await rendering).code == "code_not_active"


@pytest.mark.parametrize(
    ("change", "status", "problem"),
    [
        ("UPDATE codes SET revoked_at = issued_at WHERE xr_id = %s", 409, "code_not_active"),
        ("DELETE FROM codes WHERE xr_id = %s", 404, "code_not_found"),
    ],
    ids=["revoked", "deleted"],
)
async def test_a_code_that_ended_during_rendering_is_not_sent(
    tenant: Tenant, rival: Rival, change: str, status: int, problem: str
) -> None:
    """Another connection holds the caller's row, so the finished WAV waits for the second check."""
    code = await tenant.make_code()
    async with rival.holding("SELECT 1 FROM members FOR UPDATE"):
        rendering = await rival.while_waiting(render(tenant, code))
        await rival.run(change, code["xr_id"])
    answer = await rendering
    assert (answer.status, answer.code) == (status, problem)


async def test_a_code_that_expires_during_rendering_is_not_sent(api: Api, tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code(lifetime_s=60)
    async with rival.holding("SELECT 1 FROM members FOR UPDATE"):
        rendering = await rival.while_waiting(render(tenant, code))
        api.clock.advance(seconds=60)
    assert (await rendering).code == "code_not_active"


async def test_a_caller_demoted_during_rendering_gets_no_wav(tenant: Tenant, rival: Rival) -> None:
    code = await tenant.make_code()
    async with rival.committing("UPDATE members SET role = 'billing'"):
        rendering = await rival.while_waiting(render(tenant, code))
    answer = await rendering
    assert (answer.status, answer.code) == (403, "forbidden")


async def test_a_core_without_its_audio_component_names_it_and_stays_in_service(
    database_url: Secret, measuring_url: str
) -> None:
    async with running_core(core_settings(database_url, audience_url=measuring_url)) as api:
        ready, up = await api.get("/readyz"), await api.get("/healthz")
    assert (ready.status, ready.json) == (200, {"status": "ready", "unavailable": [], "degraded": ["audio"]})
    assert up.status == 200
