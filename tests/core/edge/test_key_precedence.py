"""A malformed request to any operation that takes idempotency keys: its key is judged before the rest of it."""

import json
from typing import Final

import pytest
from support.tenancy.tenant import Tenant

USED: Final = "a-key-of-an-issuance"
FRESH: Final = "a-key-of-nothing-yet"
KEY: Final = "/Idempotency-Key"
BODY: Final = "/unknown"
EVERY: Final = {(): [BODY], ("short",): [KEY], (USED,): "idempotency_conflict", (FRESH,): [BODY], (FRESH, FRESH): [KEY]}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/codes", EVERY),
        ("/v1/codes?dry_run=true", {(): [BODY], ("short",): [KEY], (USED,): [KEY], (FRESH,): [KEY]}),
        ("/v1/codes/batch", EVERY),
        ("/v1/codes/recover", EVERY | {(): [KEY]}),
        ("/v1/codes/batch/recover", EVERY | {(): [KEY]}),
        ("/v1/billing/checkouts?organization_id={organization_id}", EVERY),
    ],
    ids=lambda value: value.partition("{")[0] if isinstance(value, str) else "",
)
async def test_the_key_takes_precedence_over_a_malformed_body(
    tenant: Tenant, path: str, expected: dict[tuple[str, ...], list[str] | str]
) -> None:
    issued = await tenant.api.post("/v1/codes", json=tenant.code_body(), headers={"Idempotency-Key": USED})
    assert issued.status == 201
    body = (
        {"offer_id": "offer"} if "checkouts" in path else tenant.code_body(**({"count": 2} if "batch" in path else {}))
    )
    found = {}
    for keys in expected:
        answer = await tenant.api.call(
            "POST",
            path.format(organization_id=tenant.organization_id),
            content=json.dumps({**body, "unknown": 1}).encode(),
            headers=[("Content-Type", "application/json"), *(("Idempotency-Key", key) for key in keys)],
        )
        is_invalid = answer.code == "validation_failed"
        found[keys] = [error["pointer"] for error in answer.json["errors"]] if is_invalid else answer.code
    assert found == expected
