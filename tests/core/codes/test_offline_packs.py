"""`POST /v1/offline-packs`."""

import asyncio
import re
from datetime import timedelta
from typing import Any, Final

import pytest
import rfc8785
from support.api.core_client import Api
from support.api.published_contract import make_validator
from support.database.rival import Rival
from support.tenancy.closures import SUBJECTS, verify_certificate
from support.tenancy.people import People
from support.tenancy.suspension import suspend
from support.tenancy.tenant import INTENT, Tenant, make_second_project

from soundmark.core.domain.codes.code import digest_of
from soundmark.core.domain.log.entry import document_entry
from soundmark.core.features.codes.offline_packs import pack as packs
from soundmark.core.features.codes.offline_packs import service
from soundmark.kit.text.timestamps import format_timestamp, parse_timestamp
from soundmark.wire import offline_pack

_WRONG_TIMES: Final[list[Any]] = [299, 86_401, 300.5, "300", True, None]
_WRONG_IDS: Final[list[Any]] = [1, []]
LOCK: Final = "SELECT pg_advisory_xact_lock(9, hashtext(%s))"


def ids_of(pack: dict[str, Any]) -> list[str]:
    return [code["xr_id"] for code in pack["codes"]]


async def stop(tenant: Tenant, campaign: dict[str, Any]) -> Any:
    answer = await tenant.api.post(f"/v1/campaigns/{campaign['id']}/stop", params=tenant.query)
    assert answer.status == 200, answer.body
    return answer.json["packs_valid_until"]


async def test_the_pack_is_what_was_active_signed(api: Api, tenant: Tenant) -> None:
    now = api.clock.freeze()
    codes = [await tenant.make_code() for _ in range(3)]

    pack = await tenant.make_pack(valid_for_s=86_400)

    assert list(pack) == [
        *("version", "format", "pack_id", "project_id", "campaign_id", "issued_at", "valid_until", "codes"),
        *("key_id", "signature"),
    ]
    assert (pack["version"], pack["format"], pack["campaign_id"]) == (1, "svc-offline-pack-v1", None)
    assert re.fullmatch(r"opk_[A-Za-z0-9_-]{22}", pack["pack_id"])
    assert pack["project_id"] == tenant.project_id
    assert pack["issued_at"] == format_timestamp(now)
    assert pack["valid_until"] == format_timestamp(now + timedelta(days=1))
    assert pack["codes"] == [
        {
            "xr_id": code["xr_id"],
            "token_digest": digest_of(code["broadcast_token"]),
            "intent": code["intent"],
            "expires_at": code["expires_at"],
        }
        for code in sorted(codes, key=lambda code: str(code["xr_id"]))
    ]
    await verify_certificate(api, pack)
    make_validator((await api.get("/schemas/svc-offline-pack-v1.json")).json).validate(pack)


async def test_only_active_codes_that_are_not_measured_are_in_it(api: Api, tenant: Tenant) -> None:
    """Those of the campaign, or of the whole project; an empty pack is a pack."""
    api.clock.freeze()
    campaign, other = await tenant.make_campaign(), await tenant.make_campaign(name="Other")
    inside = await tenant.make_code(campaign_id=campaign["id"])
    elsewhere = await tenant.make_code(campaign_id=other["id"])
    free = await tenant.make_code()
    revoked = await tenant.make_code(campaign_id=campaign["id"])
    await tenant.revoke(revoked["xr_id"])
    await tenant.make_code(campaign_id=campaign["id"], lifetime_s=60)
    integration = await tenant.make_integration()
    measured = {"enabled": True, "integration_id": integration["id"]}
    await tenant.make_code(campaign_id=campaign["id"], audience=measured)
    await (second := await make_second_project(tenant)).make_code()
    api.clock.advance(seconds=60)

    assert ids_of(await tenant.make_pack(campaign["id"])) == [inside["xr_id"]]
    whole = await tenant.make_pack()
    assert ids_of(whole) == sorted(code["xr_id"] for code in (inside, elsewhere, free))
    assert (await tenant.make_pack(campaign["id"]))["campaign_id"] == campaign["id"]
    assert len(ids_of(await second.make_pack())) == 1
    await stop(tenant, campaign)
    assert ids_of(await tenant.make_pack(campaign["id"])) == []


async def test_the_pack_is_entered_into_the_log_and_only_its_record_kept(tenant: Tenant, rival: Rival) -> None:
    campaign = await tenant.make_campaign()
    await tenant.make_code(campaign_id=campaign["id"])
    made = [await tenant.make_pack(campaign["id"]), await tenant.make_pack()]
    entries = await rival.rows("SELECT content FROM log_queue WHERE kind = 'entry'")
    for pack in made:
        assert (document_entry(rfc8785.dumps(pack)),) in entries
    assert await rival.audited("offline_pack.created") == [
        (
            "user operator",
            tenant.project_id,
            {
                "pack_id": pack["pack_id"],
                "campaign_id": pack["campaign_id"],
                "codes": 1,
                "valid_until": pack["valid_until"],
            },
        )
        for pack in made
    ]
    assert await rival.rows("SELECT id, project_id, campaign_id, issued_at, valid_until FROM offline_packs") == [
        (
            *(pack["pack_id"], tenant.project_id, pack["campaign_id"]),
            *(parse_timestamp(pack["issued_at"]), parse_timestamp(pack["valid_until"])),
        )
        for pack in made
    ]


async def test_a_member_out_of_its_range_is_refused(tenant: Tenant, rival: Rival, subtests: pytest.Subtests) -> None:
    whole: dict[str, Any] = {"campaign_id": None, "valid_for_s": 300}
    refused: list[tuple[dict[str, Any], str]] = [
        *(({**whole, "valid_for_s": value}, "/valid_for_s") for value in _WRONG_TIMES),
        *(({**whole, "campaign_id": value}, "/campaign_id") for value in _WRONG_IDS),
        *(({name: whole[name] for name in whole if name != absent}, f"/{absent}") for absent in whole),
        ({**whole, "more": 1}, "/more"),
    ]
    params = {**tenant.query, "project_id": tenant.project_id}
    for body, pointer in refused:
        with subtests.test(body=body):
            answer = await tenant.api.post("/v1/offline-packs", params=params, json=body)
            assert (answer.status, answer.code) == (422, "validation_failed")
            assert pointer in [error["pointer"] for error in answer.json["errors"]]
    assert await rival.rows("SELECT FROM offline_packs") == []
    for valid_for_s in (300, 86_400):
        await tenant.make_pack(valid_for_s=valid_for_s)


async def test_a_project_or_campaign_elsewhere_is_not_found(tenant: Tenant, people: People) -> None:
    """To a key, another project of its own organisation too."""
    second, strangers = await make_second_project(tenant), await people.tenant_of("olga")
    reader = tenant.with_key(await tenant.make_key(scopes=["codes:read"]))
    assert (await reader.make_pack())["project_id"] == tenant.project_id
    to_second = Tenant(reader.api, tenant.organization_id, second.project_id)
    for asking in (to_second, Tenant(tenant.api, tenant.organization_id, strangers.project_id)):
        answer = await asking.ask_for_pack()
        assert (answer.status, answer.code) == (404, "project_not_found")
    for campaign_id in ((await second.make_campaign())["id"], (await strangers.make_campaign())["id"], "cmp_", ""):
        answer = await tenant.ask_for_pack(campaign_id=campaign_id)
        assert (answer.status, answer.code) == (404, "campaign_not_found")
    writer = tenant.with_key(await tenant.make_key(scopes=["codes:write"]))
    assert (await writer.ask_for_pack()).status == 403


async def test_too_many_codes_or_bytes_are_refused(
    tenant: Tenant, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (offline_pack.CODES_MAX, offline_pack.PACK_BYTES_MAX) == (10_000, 32 * 1024 * 1024)
    for _ in range(3):
        await tenant.make_code()
    whole = rfc8785.dumps(await tenant.make_pack())
    for module, name, fitting in (
        (service, "CODES_MAX", 3),
        (service, "PACK_BYTES_MAX", 3 * len(rfc8785.dumps(INTENT))),
        (packs, "PACK_BYTES_MAX", len(whole)),
    ):
        with monkeypatch.context() as limited:
            limited.setattr(module, name, fitting)
            assert (await tenant.ask_for_pack()).status == 201
            limited.setattr(module, name, fitting - 1)
            answer = await tenant.ask_for_pack()
            assert (answer.status, answer.code) == (422, "offline_pack_too_large")
    assert len(await rival.rows("SELECT FROM offline_packs")) == 4


async def test_a_code_that_does_not_verify_is_left_out(tenant: Tenant, rival: Rival) -> None:
    """As it would not resolve either."""
    codes = [await tenant.make_code() for _ in range(3)]
    altered, moved, kept = codes
    await rival.run(
        "UPDATE broadcasts SET signature = decode(repeat('00', 64), 'hex') WHERE token = %s", altered["broadcast_token"]
    )
    await rival.run("UPDATE codes SET issuer = 'Another' WHERE xr_id = %s", moved["xr_id"])
    assert ids_of(await tenant.make_pack()) == [kept["xr_id"]]


async def test_codes_are_read_in_parts(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_CODES_AT_ONCE", 2)
    codes = [await tenant.make_code() for _ in range(5)]
    assert ids_of(await tenant.make_pack()) == sorted(code["xr_id"] for code in codes)


async def test_an_organisation_makes_at_most_so_many_in_an_hour(
    api: Api, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In all its projects. The oldest of those that fill the window leaves it after an hour."""
    assert service.PACKS_MAX == 60
    monkeypatch.setattr(service, "PACKS_MAX", 2)
    api.clock.freeze()
    second = await make_second_project(tenant)
    for making in (tenant, second):
        await making.make_pack()
        api.clock.advance(seconds=600.25)
    refused = await tenant.ask_for_pack()
    assert (refused.status, refused.code, refused.headers["retry-after"]) == (429, "rate_limited", "2400")
    api.clock.advance(seconds=2399.5)
    await tenant.make_pack()
    assert (await second.ask_for_pack()).headers["retry-after"] == "601"
    api.clock.advance(days=-1)  # A clock that is set back must not refuse everything until it has caught up.
    await tenant.make_pack()


async def test_an_organisation_makes_one_at_a_time(tenant: Tenant, people: People, rival: Rival) -> None:
    """In this process and in all; another organisation is not concerned."""
    other = await people.tenant_of("olga")
    async with rival.holding(LOCK, tenant.organization_id):
        answer = await tenant.ask_for_pack()
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (429, "rate_limited", "5")
        await other.make_pack()
    async with rival.holding("LOCK TABLE audit_entries IN SHARE MODE"):
        making = await rival.while_waiting(tenant.ask_for_pack())
        answer = await tenant.ask_for_pack()
        assert (answer.status, answer.code, answer.headers["retry-after"]) == (429, "rate_limited", "5")
    assert (await making).status == 201
    await tenant.make_pack()


async def test_what_was_withdrawn_while_it_waited_is_refused(tenant: Tenant, rival: Rival) -> None:
    """A key that is revoked between the request and its lock gets nothing."""
    key = await tenant.make_key(scopes=["codes:read"])
    async with rival.committing("UPDATE api_keys SET revoked_at = now() WHERE id = %s", key["id"]):
        asking = await rival.while_waiting(tenant.with_key(key).ask_for_pack())
    assert ((await asking).status, (await asking).code) == (401, "unauthenticated")
    assert await rival.rows("SELECT FROM offline_packs") == []


async def test_a_stop_says_until_when_packs_of_the_campaign_are_valid(api: Api, tenant: Tenant) -> None:
    """Those of its whole project too, but not those of another campaign or project, and none that has ended."""
    api.clock.freeze()
    campaign, other = await tenant.make_campaign(), await tenant.make_campaign(name="Other")
    second = await make_second_project(tenant)
    await tenant.make_pack(other["id"], valid_for_s=86_400)
    await second.make_pack(valid_for_s=86_400)
    assert await stop(tenant, campaign) is None

    whole = await tenant.make_pack(valid_for_s=600)
    assert await stop(tenant, campaign) == whole["valid_until"]
    own = await tenant.make_pack(campaign["id"], valid_for_s=1200)
    await tenant.make_pack(campaign["id"], valid_for_s=300)
    assert await stop(tenant, campaign) == own["valid_until"]
    api.clock.advance(seconds=1199)
    assert await stop(tenant, campaign) == own["valid_until"]
    api.clock.advance(seconds=1)
    assert await stop(tenant, campaign) is None


async def test_a_stop_counts_the_pack_that_is_being_made(tenant: Tenant, rival: Rival) -> None:
    """It read the Codes before they were revoked, and commits afterwards. The stop itself does not wait for it."""
    campaign = await tenant.make_campaign()
    code = await tenant.make_code(campaign_id=campaign["id"])
    async with rival.holding("LOCK TABLE offline_packs IN SHARE MODE"):
        making = await rival.while_waiting(tenant.ask_for_pack())
        stopping = asyncio.create_task(stop(tenant, campaign))
        await rival.until_someone_waits(2)
        assert (await tenant.api.resolve(code["broadcast_token"])).status == 404
    pack = (await making).json
    assert ids_of(pack) == [code["xr_id"]]
    assert await stopping == pack["valid_until"]


async def test_a_suspension_says_until_when_any_pack_is_valid(api: Api, tenant: Tenant, people: People) -> None:
    """From then on no pack is made."""
    api.clock.freeze()
    await (await people.tenant_of("olga")).make_pack(valid_for_s=86_400)
    pack = await (await make_second_project(tenant)).make_pack(valid_for_s=900)
    await tenant.make_pack(valid_for_s=600)
    assert (await suspend(api, tenant.organization_id)).json["packs_valid_until"] == pack["valid_until"]
    answer = await tenant.ask_for_pack()
    assert (answer.status, answer.code) == (403, "organization_suspended")
    api.clock.advance(seconds=900)
    assert (await suspend(api, tenant.organization_id)).json["packs_valid_until"] is None


async def test_a_suspension_waits_for_the_pack_that_is_being_made(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE offline_packs IN SHARE MODE"):
        making = await rival.while_waiting(tenant.ask_for_pack())
        suspending = asyncio.create_task(suspend(tenant.api, tenant.organization_id))
        await rival.until_someone_waits(2)
    assert (await suspending).json["packs_valid_until"] == (await making).json["valid_until"]


@pytest.mark.parametrize("kind", SUBJECTS)
async def test_its_record_goes_with_its_project_or_organisation(tenant: Tenant, rival: Rival, kind: str) -> None:
    """The pack can still be verified. The record of another project stays."""
    kept = await make_second_project(tenant)
    await kept.make_pack()
    gone = [await tenant.make_pack() for _ in range(2)]

    certificate = await SUBJECTS[kind](tenant).certificate()

    all_gone = kind == "organization"
    assert certificate["deleted"]["core"]["offline_packs"] == (3 if all_gone else 2)
    assert certificate["remaining"]["core"]["offline_packs"] == 0
    for each in gone:
        await verify_certificate(tenant.api, each)
    assert len(await rival.rows("SELECT FROM offline_packs")) == (0 if all_gone else 1)
