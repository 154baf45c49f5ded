"""An integer may be written as `7` or `7.0`, and both are the same request."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support.api.core_client import Answer
from support.tenancy.tenant import Tenant

JSON = {"content-type": "application/json"}
NUMBER = "the number"


def written(body: Any, number: str) -> bytes:
    """Return the body with the number in this spelling, which no JSON writer would produce."""
    return json.dumps(body).replace(f'"{NUMBER}"', number).encode()


Send = Callable[[Tenant, str], Awaitable[Answer]]


async def issue(tenant: Tenant, number: str, **headers: str) -> Answer:
    body = written(tenant.code_body(count=NUMBER, expires_at="2999-01-01T00:00:00.000Z"), number)
    return await tenant.api.post("/v1/codes/batch", content=body, headers={**JSON, **headers})


async def create_key(tenant: Tenant, number: str) -> Answer:
    body = written(tenant.key_body(expires_in_days=NUMBER), number)
    return await tenant.api.post("/v1/api-keys", content=body, headers=JSON)


async def invite(tenant: Tenant, number: str) -> Answer:
    body = written(tenant.invitation_body(expires_in_days=NUMBER), number)
    return await tenant.api.post("/v1/member-invitations", content=body, headers=JSON)


async def create_integration(tenant: Tenant, number: str) -> Answer:
    body = written(tenant.integration_body(retention_days=NUMBER), number)
    return await tenant.api.post("/v1/audience/integrations", content=body, headers=JSON)


async def change_retention(tenant: Tenant, number: str) -> Answer:
    integration = await tenant.make_integration()
    path = f"/v1/audience/integrations/{integration['id']}/retention"
    body = written({"retention_days": NUMBER}, number)
    return await tenant.api.patch(path, params=tenant.in_project, content=body, headers=JSON)


async def bundle(tenant: Tenant, number: str) -> Answer:
    code = await tenant.make_code()
    body = written({"xr_ids": [code["xr_id"]], "protocol": NUMBER}, number)
    return await tenant.api.post("/v1/codes/audio-bundle", params=tenant.in_project, content=body, headers=JSON)


async def configure(tenant: Tenant, number: str) -> Answer:
    path = "/v1/platform/settings/configuration/smtp_port"
    return await tenant.api.put(path, content=written({"value": NUMBER}, number), headers=JSON)


EVERYWHERE: list[tuple[Send, str]] = [
    (issue, "/count"),
    (create_key, "/expires_in_days"),
    (invite, "/expires_in_days"),
    (create_integration, "/retention_days"),
    (change_retention, "/retention_days"),
    (bundle, "/protocol"),
    (configure, "/value"),
]
SENDS = [pytest.param(send, pointer, id=send.__name__) for send, pointer in EVERYWHERE]


@pytest.mark.parametrize(("send", "pointer"), SENDS)
async def test_a_whole_number_may_have_any_spelling(
    tenant: Tenant, send: Send, pointer: str, subtests: pytest.Subtests
) -> None:
    for number in ["4", "4.0", "4.000", "40e-1", "0.4E1"]:
        with subtests.test(number=number):
            answer = await send(tenant, number)
            assert answer.status in {200, 201}, (pointer, answer.body)


@pytest.mark.parametrize(("send", "pointer"), SENDS)
async def test_nothing_else_is_a_whole_number(
    tenant: Tenant, send: Send, pointer: str, subtests: pytest.Subtests
) -> None:
    for number in ["4.5", "true", '"4"', "[4]", "4.0000001", "1e400"]:
        with subtests.test(number=number):
            answer = await send(tenant, number)
            assert (answer.status, answer.code) == (422, "validation_failed")
            assert pointer in {error["pointer"][: len(pointer)] for error in answer.json["errors"]}


async def test_both_ways_of_writing_it_are_one_request(tenant: Tenant) -> None:
    """A client may repeat its request from a program in another language."""
    key = {"Idempotency-Key": "of-seven-or-so-codes"}
    first = await issue(tenant, "7", **key)
    again = await issue(tenant, "7.0", **key)
    assert (first.status, len(first.json["data"])) == (201, 7)
    assert (again.status, again.body) == (201, first.body)
    other = await issue(tenant, "7.5", **key)
    assert (other.status, other.code) == (409, "idempotency_conflict")


async def test_both_are_one_number_in_an_intent(tenant: Tenant) -> None:
    """As in RFC 8785, so the signature covers the same bytes."""
    body = tenant.code_body(intent={"type": "t", "action": "a", "resource": {"n": NUMBER}})
    for number in ("7", "7.0", "70e-1"):
        answer = await tenant.api.post("/v1/codes", content=written(body, number), headers=JSON)
        assert (answer.status, '"n":7}' in answer.body.decode()) == (201, True)
