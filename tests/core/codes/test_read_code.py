"""`GET /v1/codes/{xr_id}`: one Code in any state, but never one whose stored facts were altered."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from prometheus_client import REGISTRY
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp

ABSENT = "xr_" + "A" * 22
Act = Callable[[Tenant, str], Awaitable[Answer]]


async def read(tenant: Tenant, xr_id: str, **query: Any) -> Answer:
    return await tenant.api.get(f"/v1/codes/{xr_id}", params={**tenant.query, **query})


async def revoke(tenant: Tenant, xr_id: str) -> Answer:
    return await tenant.revoke(xr_id)


async def render(tenant: Tenant, xr_id: str) -> Answer:
    return await tenant.api.get(f"/v1/codes/{xr_id}/audio", params=tenant.query)


ACTS: dict[str, Act] = {"read": read, "revoke": revoke, "render": render}


async def test_the_detail_is_the_complete_code(tenant: Tenant) -> None:
    code = await tenant.make_code()
    answer = await read(tenant, code["xr_id"])
    assert (answer.status, answer.json) == (200, code)


async def test_an_expired_code_is_read_with_nothing_else_changed(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    code = await tenant.make_code(lifetime_s=60)
    api.clock.advance(seconds=59.999)
    assert (await read(tenant, code["xr_id"])).json == code
    api.clock.advance(seconds=0.001)
    assert (await read(tenant, code["xr_id"])).json == {**code, "status": "expired"}


async def test_a_revoked_code_is_read_with_its_time_and_stays_revoked(api: Api, tenant: Tenant) -> None:
    now = api.clock.freeze()
    code = await tenant.make_code(lifetime_s=60)
    await tenant.revoke(code["xr_id"])
    expected = {**code, "status": "revoked", "revoked_at": format_timestamp(now)}
    assert (await read(tenant, code["xr_id"])).json == expected
    api.clock.advance(seconds=61)
    assert (await read(tenant, code["xr_id"])).json == expected


@pytest.mark.parametrize("act", ACTS)
async def test_an_id_longer_than_any_is_refused(tenant: Tenant, act: str) -> None:
    answer = await ACTS[act](tenant, "xr_" + "A" * 158)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [(error["location"], error["pointer"]) for error in answer.json["errors"]] == [("path", "/xr_id")]


@pytest.mark.parametrize("act", ACTS)
async def test_an_id_is_the_whole_id_in_its_own_case(tenant: Tenant, act: str) -> None:
    xr_id = (await tenant.make_code())["xr_id"]
    for other in (xr_id[:-1], xr_id + "A", xr_id.swapcase(), xr_id + "%20", "xr_" + xr_id):
        assert (await ACTS[act](tenant, other)).code == "code_not_found"


async def test_a_token_is_not_an_id(tenant: Tenant) -> None:
    code = await tenant.make_code()
    assert (await read(tenant, code["broadcast_token"])).code == "code_not_found"


async def test_the_project_of_the_code_may_be_named(tenant: Tenant) -> None:
    code = await tenant.make_code()
    assert (await read(tenant, code["xr_id"], project_id=tenant.project_id)).json == code


async def test_a_code_of_another_project_is_not_found(api: Api, tenant: Tenant) -> None:
    """The same 404 as for an unknown id and for an unknown project."""
    code = await tenant.make_code()
    own = await api.make_project(tenant.organization_id, "Evening show")
    foreign = (await make_tenant(api)).project_id
    headers = {"X-Request-Id": "same"}
    answers = [await tenant.api.get(f"/v1/codes/{ABSENT}", params=tenant.query, headers=headers)]
    for project_id in (own, foreign, "prj_" + "A" * 22, "", "nope", "prj_\0", code["xr_id"]):
        query = {**tenant.query, "project_id": project_id}
        answers.append(await api.get(f"/v1/codes/{code['xr_id']}", params=query, headers=headers))
    assert {(answer.status, answer.code) for answer in answers} == {(404, "code_not_found")}
    assert len({answer.body for answer in answers}) == 1


_RENAME = (
    "WITH copy AS (INSERT INTO broadcasts SELECT '{0}', payload, signature, NULL, organization_id"
    " FROM broadcasts)"
    " UPDATE codes SET broadcast_token = '{0}'"
)
_REPLACE = "UPDATE broadcasts SET payload = replace(encode(payload, 'escape'), '{}', '{}')::bytea"
_SET_BYTE = "UPDATE broadcasts SET signature = set_byte(signature, {0}, (get_byte(signature, {0}) + 1) %% 256)"
# One for each stored copy of a fact: a column of `codes`, or the signed payload in `broadcasts`.
ALTERATIONS = {
    "project_id": "UPDATE codes SET project_id = (SELECT id FROM projects WHERE projects.id <> codes.project_id"
    " AND projects.organization_id = codes.organization_id)",
    "campaign_id": "WITH other AS (INSERT INTO campaigns (organization_id, id, project_id, name, created_at) SELECT"
    " organization_id, 'cmp_' || repeat('A', 22), project_id, 'Another', issued_at FROM codes LIMIT 1 RETURNING id)"
    " UPDATE codes SET campaign_id = other.id FROM other",
    "issuer": "UPDATE codes SET issuer = 'Radio Suedlicht'",
    "issuer: its case": "UPDATE codes SET issuer = lower(issuer)",
    "issued_at": "UPDATE codes SET issued_at = issued_at - interval '1 millisecond'",
    "expires_at: later": "UPDATE codes SET expires_at = expires_at + interval '1 millisecond'",
    "expires_at: earlier": "UPDATE codes SET expires_at = expires_at - interval '1 hour'",
    "expires_at: by less than is signed": "UPDATE codes SET expires_at = expires_at + interval '1 microsecond'",
    "broadcast_token": _RENAME.format("brd_" + "A" * 16),
    "broadcast_token: no ASCII": _RENAME.format("brd_ä"),
    "audience_integration_id": "UPDATE codes SET audience_integration_id = 'int_' || repeat('A', 22)",
    "key_id": "UPDATE codes SET key_id = 'sig_' || repeat('A', 22)",
    "payload: issuer": _REPLACE.format("Nordlicht", "Suedlicht"),
    "payload: intent": _REPLACE.format("open", "shut"),
    "payload: expires_at": _REPLACE.format('expires_at":"20', 'expires_at":"30'),
    "payload: token_digest": _REPLACE.format('token_digest":"', 'token_digest":"A'),
    "payload: key_id": _REPLACE.format('key_id":"sig_', 'key_id":"sig_A'),
    "payload: policy": _REPLACE.format('measurement":false', 'measurement":true'),
    "payload: policy, no object": _REPLACE.format('"policy":{', '"policy":1,"more":{'),
    "payload: version": _REPLACE.format('version":1', 'version":2'),
    "payload: gone": "DELETE FROM broadcasts",
    "payload: one more byte": "UPDATE broadcasts SET payload = payload || ' '::bytea",
    "payload: one more member": _REPLACE.format('"version":1', '"version":1,"more":1'),
    "payload: a member twice": _REPLACE.format('"version":1', '"version":1,"version":1'),
    "payload: empty": "UPDATE broadcasts SET payload = ''",
    "payload: no JSON": "UPDATE broadcasts SET payload = 'x'",
    "payload: no UTF-8": "UPDATE broadcasts SET payload = '\\xff'",
    "payload: no object": "UPDATE broadcasts SET payload = '[]'",
    "signature: first byte": _SET_BYTE.format(0),
    "signature: last byte": _SET_BYTE.format(63),
    "signature: one more byte": "UPDATE broadcasts SET signature = signature || '\\x00'",
    "signature: empty": "UPDATE broadcasts SET signature = ''",
}


def broken_count() -> float:
    return REGISTRY.get_sample_value("soundmark_integrity_failures_total", {"reader": "tenant"}) or 0.0


async def test_an_altered_code_is_not_found_and_counted(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Whichever single copy of a fact somebody with access to the database changes."""
    await api.make_project(tenant.organization_id, "Evening show")
    wrong = []
    for name, alteration in ALTERATIONS.items():
        await rival.run("WITH gone AS (DELETE FROM codes) DELETE FROM broadcasts")
        code = await tenant.make_code()
        assert await rival.run(alteration) == 1, name
        before = broken_count()
        answers = [await act(tenant, code["xr_id"]) for act in (read, render)]
        if {(answer.status, answer.code) for answer in answers} != {(404, "code_not_found")}:
            wrong.append(name)
        if broken_count() != before + 2:
            wrong.append(f"{name}: not counted")
    assert wrong == []


async def test_a_code_moved_to_another_id_is_not_found(tenant: Tenant, rival: Rival) -> None:
    await tenant.make_code()
    before = broken_count()
    await rival.run("UPDATE codes SET xr_id = %s", ABSENT)
    assert (await read(tenant, ABSENT)).code == "code_not_found"
    assert broken_count() == before + 1


async def test_a_code_moved_to_another_organisation_is_not_found(api: Api, tenant: Tenant, rival: Rival) -> None:
    """Even if that organisation has a project of the same id, as the table requires."""
    code = await tenant.make_code()
    other = await make_tenant(api)
    await rival.run("UPDATE projects SET id = %s WHERE id = %s", tenant.project_id + "x", other.project_id)
    await rival.run(
        "INSERT INTO projects SELECT %s, %s, 'Moved', created_at FROM projects LIMIT 1",
        other.organization_id,
        tenant.project_id,
    )
    assert await rival.run("UPDATE codes SET organization_id = %s", other.organization_id) == 1
    before = broken_count()
    assert (await read(other, code["xr_id"])).code == "code_not_found"
    assert broken_count() == before + 1


async def test_two_genuine_records_cannot_be_exchanged(tenant: Tenant, rival: Rival) -> None:
    one, other = await tenant.make_code(), await tenant.make_code()
    await rival.run(
        "UPDATE broadcasts SET (payload, signature) ="
        " (SELECT payload, signature FROM broadcasts AS rest WHERE rest.token <> broadcasts.token)"
    )
    for code in (one, other):
        assert (await read(tenant, code["xr_id"])).code == "code_not_found"


async def test_every_column_of_a_code_is_altered_above(rival: Rival) -> None:
    """A column added later needs a line there, unless no signed fact depends on it."""
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'codes'"
    altered = {alteration.partition(":")[0] for alteration in ALTERATIONS} - {"payload", "signature"}
    named_elsewhere = {"xr_id", "organization_id", "revoked_at", "address"}
    assert {name for (name,) in await rival.rows(columns)} == altered | named_elsewhere


async def test_an_altered_code_can_be_revoked_but_is_not_shown(api: Api, tenant: Tenant, rival: Rival) -> None:
    """The owner can revoke it, but its stored facts are not trusted."""
    code = await tenant.make_code()
    await rival.run("UPDATE codes SET issuer = 'Radio Suedlicht'")
    answer = await tenant.revoke(code["xr_id"])
    assert (answer.status, answer.code) == (404, "code_not_found")
    assert (await api.resolve(code["broadcast_token"])).code == "code_unavailable"
