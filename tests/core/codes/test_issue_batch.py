"""`POST /v1/codes/batch`: up to 100 Codes that differ only in their ids and tokens, all of them or none."""

from typing import Any

import pytest
from soundmark_sdk import read_key_set, verify_signed_code
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant

from soundmark.core.features.codes.issuance import issue_group


async def issue(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/codes/batch", json=tenant.code_body(count=3) | changes)


async def stored(rival: Rival) -> list[int]:
    """Return the numbers of Codes, broadcasts, counted days and audit entries of issuances."""
    counted = [await rival.rows(f"SELECT 1 FROM {table}") for table in ("codes", "broadcasts", "code_usage_days")]
    return [*map(len, counted), len(await rival.audited("code.batch_issued"))]


async def test_every_code_of_a_batch_is_complete(api: Api, tenant: Tenant) -> None:
    answer = await issue(tenant)
    keys = read_key_set((await api.get("/v1/keys")).body)

    assert answer.status == 201
    codes = answer.json["data"]
    assert len({code["xr_id"] for code in codes}) == len({code["broadcast_token"] for code in codes}) == 3
    for code in codes:
        assert verify_signed_code(code["signed_code"], keys).xr_id == code["xr_id"]
        detail = await api.get(f"/v1/codes/{code['xr_id']}", params=tenant.query)
        assert detail.json == code
        assert (await api.resolve(code["broadcast_token"])).json["intent"] == code["intent"]


async def test_codes_of_a_batch_differ_in_nothing_else(tenant: Tenant) -> None:
    one, two, _ = (await issue(tenant)).json["data"]
    own = {"xr_id", "broadcast_token", "broadcast_frame", "signed_code"}
    assert {name: value for name, value in one.items() if name not in own} == {
        name: value for name, value in two.items() if name not in own
    }
    own = {"xr_id", "token_digest", "signature"}
    signed = [{n: v for n, v in code["signed_code"].items() if n not in own} for code in (one, two)]
    assert signed[0] == signed[1]


@pytest.mark.parametrize("count", [1, 100])
async def test_a_batch_holds_one_to_a_hundred(tenant: Tenant, rival: Rival, count: int) -> None:
    answer = await issue(tenant, count=count)
    assert (answer.status, len(answer.json["data"])) == (201, count)
    assert await stored(rival) == [count, count, 1, 1]


@pytest.mark.parametrize("count", [0, 101, 1.5], ids=ascii)
async def test_another_count_is_refused(tenant: Tenant, rival: Rival, count: Any) -> None:
    answer = await issue(tenant, count=count)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/count"]
    assert await stored(rival) == [0, 0, 0, 0]


async def test_a_batch_is_one_entry_of_the_audit_log(tenant: Tenant, rival: Rival) -> None:
    codes = (await issue(tenant)).json["data"]
    ((actor, project_id, metadata),) = await rival.audited("code.batch_issued")
    assert (actor, project_id) == ("user operator", tenant.project_id)
    assert metadata == {"xr_ids": [code["xr_id"] for code in codes]}


async def test_a_batch_whose_last_code_fails_leaves_nothing(
    tenant: Tenant, rival: Rival, monkeypatch: pytest.MonkeyPatch
) -> None:
    minted: list[str] = []

    def mint_again(entropy: Any, prefix: str, *chars: int) -> str:
        minted.append(prefix)
        is_last = prefix == "brd_" and minted.count("brd_") == 100
        return "brd_" + "A" * 16 if is_last else true_mint(entropy, prefix, *chars)

    await rival.run("INSERT INTO broadcasts VALUES (%s, %s, %s, NULL, 'org_x')", "brd_" + "A" * 16, b"taken", b"")
    true_mint = issue_group.mint
    monkeypatch.setattr(issue_group, "mint", mint_again)
    answer = await tenant.api.post(
        "/v1/codes/batch", json=tenant.code_body(count=100), headers={"Idempotency-Key": "k" * 16}
    )

    assert (answer.status, answer.code) == (500, "internal_error")
    assert await stored(rival) == [0, 1, 0, 0]
    assert await rival.rows("SELECT 1 FROM issuance_receipts") == []
