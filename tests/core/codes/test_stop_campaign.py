"""`POST /v1/campaigns/{campaign_id}/stop`: the emergency stop. Once it answers, no Code of the campaign is active."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.features.codes.campaigns import service
from soundmark.kit.text.timestamps import format_timestamp


async def stop(tenant: Tenant, campaign: dict[str, Any] | str) -> Answer:
    campaign_id = campaign if isinstance(campaign, str) else campaign["id"]
    return await tenant.api.post(f"/v1/campaigns/{campaign_id}/stop", params=tenant.query)


async def make_codes(tenant: Tenant, campaign: dict[str, Any], count: int = 3) -> list[dict[str, Any]]:
    body = {**tenant.code_body(campaign_id=campaign["id"]), "count": count}
    answer = await tenant.api.post("/v1/codes/batch", json=body)
    assert answer.status == 201, answer.body
    codes: list[dict[str, Any]] = answer.json["data"]
    return codes


async def status_of(tenant: Tenant, code: dict[str, Any]) -> str:
    return str((await tenant.api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)).json["status"])


async def heard(tenant: Tenant, code: dict[str, Any]) -> str:
    """Return the answer that a receiver of the Code gets."""
    answer = await tenant.api.resolve(code["broadcast_token"])
    return "resolved" if answer.status == 200 else answer.code


async def revoked_at(rival: Rival) -> set[tuple[Any, Any]]:
    """Return when the Codes and their broadcasts were revoked, as stored."""
    return set(
        await rival.rows(
            "SELECT c.revoked_at, b.revoked_at FROM codes c JOIN broadcasts b ON b.token = c.broadcast_token"
        )
    )


async def archived(rival: Rival) -> list[bool]:
    return [is_archived for (is_archived,) in await rival.rows("SELECT archived_at IS NOT NULL FROM campaigns")]


async def test_every_active_code_is_revoked_and_the_campaign_archived(api: Api, tenant: Tenant, rival: Rival) -> None:
    api.clock.freeze()
    campaign = await tenant.make_campaign()
    codes = await make_codes(tenant, campaign)
    api.clock.advance(seconds=1.5)
    answer = await stop(tenant, campaign)
    now = api.clock.now()
    stopped = {**campaign, "status": "archived", "archived_at": format_timestamp(now)}
    assert (answer.status, answer.json) == (200, {"campaign": stopped, "revoked_count": 3, "packs_valid_until": None})
    assert [await heard(tenant, code) for code in codes] == ["code_unavailable"] * 3
    assert [await status_of(tenant, code) for code in codes] == ["revoked"] * 3
    assert await revoked_at(rival) == {(now, now)}
    expected = {"campaign_id": campaign["id"], "revoked_count": 3}
    assert await rival.audited("campaign.stopped") == [("user operator", tenant.project_id, expected)]
    assert await rival.audited("campaign.archived") == []


async def test_a_campaign_without_codes_is_stopped(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    assert (await stop(tenant, campaign)).json["revoked_count"] == 0
    assert await archived(rival) == [True]


async def test_no_code_is_issued_under_it_afterwards(api: Api, tenant: Tenant) -> None:
    campaign = await tenant.make_campaign()
    await stop(tenant, campaign)
    for path, more in (("/v1/codes", {}), ("/v1/codes/batch", {"count": 2})):
        answer = await api.post(path, json={**tenant.code_body(campaign_id=campaign["id"]), **more})
        assert (answer.status, answer.code) == (409, "campaign_archived")


async def test_a_repeated_issuance_after_it_returns_revoked_codes(api: Api, tenant: Tenant) -> None:
    """An idempotent retry and a recovery return the original Code; neither makes its token resolve."""
    campaign = await tenant.make_campaign()
    body, key = tenant.code_body(campaign_id=campaign["id"]), {"Idempotency-Key": "k" * 16}
    issued = await api.post("/v1/codes", json=body, headers=key)
    await stop(tenant, campaign)
    again = await api.post("/v1/codes", json=body, headers=key)
    recovered = await api.post("/v1/codes/recover", json=body, headers=key)
    assert (again.status, again.body, recovered.body) == (201, issued.body, issued.body)
    assert await heard(tenant, issued.json) == "code_unavailable"


async def test_other_codes_stay_active(api: Api, tenant: Tenant) -> None:
    """Codes without a campaign, of another campaign, and of another organisation."""
    campaign, other = await tenant.make_campaign(), await tenant.make_campaign("Other")
    elsewhere = await make_tenant(api)
    foreign = await elsewhere.make_campaign()
    await make_codes(tenant, campaign, 2)
    kept = [await tenant.make_code(), *await make_codes(tenant, other, 2)]
    kept_elsewhere = await make_codes(elsewhere, foreign, 2)
    assert (await stop(tenant, campaign)).json["revoked_count"] == 2
    assert [await heard(tenant, code) for code in kept + kept_elsewhere] == ["resolved"] * 5
    assert [await status_of(tenant, code) for code in kept] == ["active"] * 3
    assert [await status_of(elsewhere, code) for code in kept_elsewhere] == ["active"] * 2


async def test_expired_and_revoked_codes_stay_as_they_are(api: Api, tenant: Tenant, rival: Rival) -> None:
    start = api.clock.freeze()
    campaign = await tenant.make_campaign()
    expired = await tenant.make_code(campaign_id=campaign["id"], lifetime_s=60)
    revoked, active = await make_codes(tenant, campaign, 2)
    await tenant.revoke(revoked["xr_id"])
    api.clock.advance(seconds=60)
    assert (await stop(tenant, campaign)).json["revoked_count"] == 1
    assert [await status_of(tenant, code) for code in (expired, revoked, active)] == ["expired", "revoked", "revoked"]
    assert [await heard(tenant, code) for code in (expired, revoked)] == ["code_expired", "code_unavailable"]
    now = api.clock.now()
    assert await revoked_at(rival) == {(None, None), (start, start), (now, now)}


async def test_a_repeated_stop_revokes_nothing_and_is_audited(api: Api, tenant: Tenant, rival: Rival) -> None:
    """The campaign stays as the first stop left it."""
    campaign = await tenant.make_campaign()
    await make_codes(tenant, campaign)
    first = (await stop(tenant, campaign)).json
    api.clock.advance(seconds=5)
    again = await stop(tenant, campaign)
    assert (again.status, again.json) == (
        200,
        {"campaign": first["campaign"], "revoked_count": 0, "packs_valid_until": None},
    )
    assert [entry["revoked_count"] for _, _, entry in await rival.audited("campaign.stopped")] == [3, 0]


async def test_a_stop_of_an_archived_campaign_revokes_what_is_active(api: Api, tenant: Tenant) -> None:
    """The time of its archiving stays."""
    campaign = await tenant.make_campaign()
    codes = await make_codes(tenant, campaign)
    archiving = await api.post(f"/v1/campaigns/{campaign['id']}/archive", params=tenant.query)
    api.clock.advance(seconds=5)
    answer = await stop(tenant, campaign)
    assert answer.json == {"campaign": archiving.json, "revoked_count": 3, "packs_valid_until": None}
    assert [await heard(tenant, code) for code in codes] == ["code_unavailable"] * 3


async def test_two_stops_at_once_revoke_each_code_once(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    await make_codes(tenant, campaign)
    async with rival.holding("SELECT 1 FROM campaigns FOR UPDATE"):
        one, two = asyncio.create_task(stop(tenant, campaign)), asyncio.create_task(stop(tenant, campaign))
        await rival.until_someone_waits(2)
    assert sorted([(await one).json["revoked_count"], (await two).json["revoked_count"]]) == [0, 3]
    assert (await one).json["campaign"] == (await two).json["campaign"]
    assert len(await revoked_at(rival)) == 1


async def test_an_issuance_under_way_is_waited_for_and_revoked(api: Api, tenant: Tenant, rival: Rival) -> None:
    """The issuance has written its Codes and holds the campaign; none of them is active afterwards."""
    campaign = await tenant.make_campaign()
    body = {**tenant.code_body(campaign_id=campaign["id"]), "count": 5}
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        issuing = await rival.while_waiting(api.post("/v1/codes/batch", json=body))
        stopping = asyncio.create_task(stop(tenant, campaign))
        await rival.until_someone_waits(2)
    codes = (await issuing).json["data"]
    assert ((await issuing).status, (await stopping).json["revoked_count"]) == (201, 5)
    assert [await heard(tenant, code) for code in codes] == ["code_unavailable"] * 5


async def test_no_code_inserted_by_another_transaction_survives_it(tenant: Tenant, rival: Rival) -> None:
    """An insert locks the campaign through its foreign key alone, and the stop sees everything committed."""
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"])
    token = "brd_" + "r" * 16
    insert = (
        "WITH b AS (INSERT INTO broadcasts (token, payload, signature, organization_id)"
        " SELECT %s, payload, signature, organization_id FROM broadcasts WHERE token = %s)"
        " INSERT INTO codes SELECT organization_id, %s, project_id, campaign_id, issuer, issued_at, expires_at, %s,"
        " audience_integration_id, key_id, NULL, address FROM codes WHERE xr_id = %s"
    )
    params = (token, code["broadcast_token"], "xr_" + "r" * 22, token, code["xr_id"])
    async with rival.committing(insert, *params):
        stopping = await rival.while_waiting(stop(tenant, campaign))
    assert (await stopping).json["revoked_count"] == 2
    assert await rival.rows("SELECT FROM codes WHERE revoked_at IS NULL") == []
    assert await rival.rows("SELECT FROM broadcasts WHERE revoked_at IS NULL") == []


async def test_an_issuance_that_waits_for_a_stop_is_refused(api: Api, tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    await make_codes(tenant, campaign)
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        stopping = await rival.while_waiting(stop(tenant, campaign))
        issuing = asyncio.create_task(api.post("/v1/codes", json=tenant.code_body(campaign_id=campaign["id"])))
        await rival.until_someone_waits(2)
    assert (await stopping).json["revoked_count"] == 3
    assert ((await issuing).status, (await issuing).code) == (409, "campaign_archived")
    assert await rival.rows("SELECT FROM codes WHERE revoked_at IS NULL") == []


@pytest.mark.parametrize("held", ["campaigns", "codes"])
async def test_expiry_is_judged_after_the_lock_wait(api: Api, tenant: Tenant, rival: Rival, held: str) -> None:
    """A Code that expires while the stop waits, for the campaign or for a Code, is expired, not revoked."""
    api.clock.freeze()
    campaign = await tenant.make_campaign()
    expiring = await tenant.make_code(campaign_id=campaign["id"], lifetime_s=60)
    lasting = await tenant.make_code(campaign_id=campaign["id"], lifetime_s=62)
    async with rival.holding(f"SELECT 1 FROM {held} FOR UPDATE"):
        stopping = await rival.while_waiting(stop(tenant, campaign))
        api.clock.advance(seconds=61)
    assert (await stopping).json["revoked_count"] == 1
    assert [await heard(tenant, code) for code in (expiring, lasting)] == ["code_expired", "code_unavailable"]


async def test_a_revocation_under_way_is_waited_for_and_keeps_its_moment(
    api: Api, tenant: Tenant, rival: Rival
) -> None:
    campaign = await tenant.make_campaign()
    codes = await make_codes(tenant, campaign)
    earlier = api.clock.freeze()
    revoke = (
        "WITH c AS (UPDATE codes SET revoked_at = %s WHERE xr_id = %s RETURNING broadcast_token)"
        " UPDATE broadcasts b SET revoked_at = %s FROM c WHERE b.token = c.broadcast_token"
    )
    async with rival.committing(revoke, earlier, codes[1]["xr_id"], earlier):
        stopping = await rival.while_waiting(stop(tenant, campaign))
        api.clock.advance(seconds=5)
    now = api.clock.now()
    assert (await stopping).json["revoked_count"] == 2
    assert await revoked_at(rival) == {(earlier, earlier), (now, now)}


async def test_a_stop_and_revocations_of_the_same_codes_never_wait_for_each_other(
    api: Api, tenant: Tenant, rival: Rival
) -> None:
    """All of them lock Codes in the order of their ids, so that none ends as a deadlock."""
    campaign = await tenant.make_campaign()
    codes = await make_codes(tenant, campaign, 20)
    ids = [code["xr_id"] for code in codes]
    backwards = {"project_id": tenant.project_id, "xr_ids": sorted(ids, reverse=True)}
    async with rival.holding("SELECT 1 FROM codes FOR UPDATE"):
        waiting = [
            asyncio.create_task(api.post("/v1/codes/revoke-batch", params=tenant.query, json=backwards)),
            asyncio.create_task(tenant.revoke(max(ids))),
            asyncio.create_task(stop(tenant, campaign)),
            asyncio.create_task(tenant.revoke(min(ids))),
        ]
        await rival.until_someone_waits(4)
    assert [answer.status for answer in await asyncio.gather(*waiting)] == [200] * 4
    assert {bool(one and other) for one, other in await revoked_at(rival)} == {True}


async def test_a_stop_may_take_longer_than_anything_else(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Every other statement is cut off after 30 s; otherwise a very large campaign could never be stopped."""
    campaign = await tenant.make_campaign()
    await make_codes(tenant, campaign)
    allowed = (
        "CREATE FUNCTION note_timeout() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN NEW.archived_at = to_timestamp(extract(epoch FROM current_setting('statement_timeout')::interval));"
        " RETURN NEW; END $$"
    )
    await rival.run(allowed)
    try:
        await rival.run("CREATE TRIGGER noting BEFORE UPDATE ON campaigns FOR EACH ROW EXECUTE FUNCTION note_timeout()")
        await stop(tenant, campaign)
        other = await tenant.make_campaign("Other")
        await api.post(f"/v1/campaigns/{other['id']}/archive", params=tenant.query)
    finally:
        await rival.run("DROP FUNCTION note_timeout CASCADE")
    seconds = await rival.rows("SELECT extract(epoch FROM archived_at)::int FROM campaigns ORDER BY created_at")
    assert seconds == [(service.STOP_TIMEOUT_S,), (30,)]


async def test_a_server_key_stops_campaigns_of_its_project(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    codes = await make_codes(tenant, campaign)
    key = await tenant.make_key(scopes=["codes:write"])
    answer = await stop(tenant.with_key(key), campaign)
    assert (answer.status, answer.json["revoked_count"]) == (200, 3)
    assert [await heard(tenant, code) for code in codes] == ["code_unavailable"] * 3
    ((actor, project_id, _),) = await rival.audited("campaign.stopped")
    assert (actor, project_id) == (f"api_key {key['id']}", tenant.project_id)


async def test_a_key_that_is_revoked_meanwhile_stops_nothing(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    server = tenant.with_key(await tenant.make_key())
    revoke = (
        "WITH k AS (SELECT id FROM api_keys FOR UPDATE) UPDATE api_keys SET revoked_at = now() FROM k"
        " WHERE api_keys.id = k.id"
    )
    async with rival.committing(revoke):
        stopping = await rival.while_waiting(stop(server, campaign))
    assert ((await stopping).status, (await stopping).code) == (401, "unauthenticated")
    assert await archived(rival) == [False]
