"""What an API key may do: act in its project within its scopes, and nothing that requires a person."""

from typing import Any

import pytest
from support.api.core_client import PROOF, Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.running_apps import running_core
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_second_project, make_tenant

from soundmark.core.domain.tenancy.scope import ServerKey
from soundmark.kit.crypto.secret import Secret


def refused(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


async def every_act(server: Tenant, xr_id: str) -> dict[str, Answer]:
    """Yield everything that keys may do with a Code, in the key's own project by default."""
    api, query = server.api, server.query
    return {
        "issue": await api.post("/v1/codes", json=server.code_body()),
        "list": await api.get("/v1/codes", params=query),
        "read": await api.get(f"/v1/codes/{xr_id}", params=query),
        "render": await api.get(f"/v1/codes/{xr_id}/audio", params=query),
        "revoke": await api.post(f"/v1/codes/{xr_id}/revoke", params=query),
    }


async def test_a_key_may_do_with_codes_what_its_scopes_allow(tenant: Tenant) -> None:
    """From any address: a key is not an operator token."""
    code = await tenant.make_code()
    server = tenant.with_key(await tenant.make_key(scopes=["codes:read", "codes:write"]))
    statuses = {name: answer.status for name, answer in (await every_act(server, code["xr_id"])).items()}
    assert statuses == {"issue": 201, "list": 200, "read": 200, "render": 200, "revoke": 200}


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        ("codes:read", {"list", "read", "render"}),
        ("codes:write", {"issue", "revoke"}),
        ("audience:read", set()),
        ("audience:write", set()),
    ],
)
async def test_a_scope_does_not_include_another(tenant: Tenant, rival: Rival, scope: str, allowed: set[str]) -> None:
    """Writing does not include reading."""
    code = await tenant.make_code()
    server = tenant.with_key(await tenant.make_key(scopes=[scope]))
    for name, answer in (await every_act(server, code["xr_id"])).items():
        if name in allowed:
            assert answer.status in {200, 201}, name
        else:
            assert refused(answer) == (403, "insufficient_scope"), name
    if scope != "codes:write":
        assert await rival.rows("SELECT revoked_at FROM codes") == [(None,)]


async def test_a_code_of_another_project_is_not_found(tenant: Tenant) -> None:
    """This holds for every act, and the list leaves the Code out."""
    other = await make_second_project(tenant)
    code, others = await tenant.make_code(), await other.make_code()
    server = tenant.with_key(await tenant.make_key())
    answers = await every_act(server, others["xr_id"])
    for name in ("read", "render", "revoke"):
        assert refused(answers[name]) == (404, "code_not_found"), name
    listed = {entry["xr_id"] for entry in answers["list"].json["data"]}
    assert listed == {code["xr_id"], answers["issue"].json["xr_id"]}
    detail = await tenant.api.get(f"/v1/codes/{others['xr_id']}", params=tenant.query)
    assert detail.json["status"] == "active"


async def test_a_key_issues_in_its_own_project_only(tenant: Tenant, rival: Rival) -> None:
    other = await make_second_project(tenant)
    server = tenant.with_key(await tenant.make_key())
    for project_id in (other.project_id, "prj_" + "A" * 22, "x"):
        answer = await server.api.post("/v1/codes", json=tenant.code_body(project_id=project_id))
        assert refused(answer) == (404, "project_not_found")
    assert await rival.rows("SELECT 1 FROM codes") == []


async def test_another_project_named_for_a_code_is_not_found(tenant: Tenant) -> None:
    """Whether or not the Code belongs to it."""
    other = await make_second_project(tenant)
    own, others = await tenant.make_code(), await other.make_code()
    server = tenant.with_key(await tenant.make_key())
    for code in (own, others):
        query = {**tenant.query, "project_id": other.project_id}
        assert refused(await server.api.get(f"/v1/codes/{code['xr_id']}", params=query)) == (404, "project_not_found")
    query = {**tenant.query, "project_id": tenant.project_id}
    assert (await server.api.get(f"/v1/codes/{own['xr_id']}", params=query)).status == 200


async def test_a_cursor_of_another_caller_is_refused(api: Api, tenant: Tenant) -> None:
    """A cursor of a person or of another project's key is refused."""
    other = await make_second_project(tenant)
    for _ in range(2):
        await tenant.make_code()
        await other.make_code()
        api.clock.advance(milliseconds=1)
    keys = [tenant.with_key(await one.make_key()) for one in (tenant, other)]
    pages = [await server.api.get("/v1/codes", params={**tenant.query, "limit": 1}) for server in (*keys, tenant)]
    own = await keys[0].api.get("/v1/codes", params={**tenant.query, "cursor": pages[0].json["next_cursor"]})
    assert (own.status, len(own.json["data"]), own.json["next_cursor"]) == (200, 1, None)
    for page in pages[1:]:
        answer = await keys[0].api.get("/v1/codes", params={**tenant.query, "cursor": page.json["next_cursor"]})
        assert refused(answer) == (422, "invalid_cursor")


async def test_another_organisation_is_not_found(api: Api, tenant: Tenant) -> None:
    """Like an organisation that does not exist: byte for byte the same."""
    foreign = await make_tenant(api)
    code = await foreign.make_code()
    server = tenant.with_key(await tenant.make_key())
    same_id = {"X-Request-Id": "same"}
    server.api._client.headers.update(same_id)
    as_foreign = await every_act(Tenant(server.api, foreign.organization_id, foreign.project_id), code["xr_id"])
    as_unknown = await every_act(Tenant(server.api, "org_" + "A" * 22, foreign.project_id), code["xr_id"])
    for name, answer in as_foreign.items():
        assert refused(answer) == (404, "organization_not_found"), name
        assert answer.body == as_unknown[name].body


async def test_operations_for_people_are_refused(tenant: Tenant, rival: Rival) -> None:
    """Even with every scope."""
    key = await tenant.make_key(scopes=["audience:read", "audience:write", "codes:read", "codes:write"])
    api, query = tenant.with_key(key).api, tenant.query
    calls: list[tuple[str, str, dict[str, Any]]] = [
        ("POST", "/v1/organizations", {"json": {"name": "Radio"}}),
        ("GET", "/v1/organizations", {}),
        ("PATCH", f"/v1/organizations/{tenant.organization_id}", {"json": {"name": "Radio"}}),
        ("POST", "/v1/projects", {"json": {"organization_id": tenant.organization_id, "name": "Show"}}),
        ("GET", "/v1/projects", {"params": query}),
        ("PATCH", f"/v1/projects/{tenant.project_id}", {"params": query, "json": {"name": "Show"}}),
        ("POST", "/v1/api-keys", {"json": tenant.key_body()}),
        ("GET", "/v1/api-keys", {"params": query}),
        ("POST", f"/v1/api-keys/{key['id']}/revoke", {"params": query}),
        ("POST", f"/v1/api-keys/{key['id']}/secret", {"params": query}),
        ("GET", "/v1/members", {"params": query}),
        ("PUT", "/v1/members/operator", {"params": query, "json": {"role": "member"}}),
        ("DELETE", "/v1/members/operator", {"params": query}),
    ]
    for method, path, options in calls:
        assert refused(await api.call(method, path, **options)) == (403, "user_token_required"), (method, path)
    assert await rival.rows("SELECT count(*) FROM api_keys WHERE revoked_at IS NULL") == [(1,)]


async def test_the_log_names_the_key(tenant: Tenant, rival: Rival) -> None:
    key = await tenant.make_key()
    server = tenant.with_key(key)
    code = (await server.api.post("/v1/codes", json=tenant.code_body())).json
    await server.revoke(code["xr_id"])
    expected = [(f"api_key {key['id']}", tenant.project_id, {"xr_id": code["xr_id"]})]
    assert await rival.audited("code.issued") == await rival.audited("code.revoked") == expected


async def test_a_code_of_a_key_resolves(tenant: Tenant) -> None:
    server = tenant.with_key(await tenant.make_key())
    code = (await server.api.post("/v1/codes", json=tenant.code_body())).json
    assert (await tenant.api.get(f"/v1/resolve/{code['broadcast_token']}", headers=PROOF)).status == 200


@pytest.mark.parametrize(
    "secret",
    [
        *("xak_" + "A" * 43, "xak_", "xak_" + "A" * 42, "xak_" + "A" * 44, "xak_" + "A" * 42 + "=", "xak_" + "ä" * 43),
        *("xak_" + "A" * 42 + "\u0663", "xak_" + "A" * 100_000),
    ],
    ids=lambda secret: ascii(secret)[:20],
)
async def test_a_malformed_secret_is_refused(tenant: Tenant, secret: str) -> None:
    await tenant.make_key()
    headers = {b"Authorization": f"Bearer {secret}".encode()}
    answer = await tenant.api.other(token=None).get("/v1/codes", params=tenant.query, headers=headers)
    assert refused(answer) == (401, "unauthenticated")


async def test_a_malformed_secret_is_not_looked_up(tenant: Tenant, rival: Rival) -> None:
    """It costs no query, however many somebody sends."""
    stranger = tenant.api.other(token="xak_" + "A" * 42)
    async with rival.holding("LOCK TABLE api_key_digests IN ACCESS EXCLUSIVE MODE"):
        assert refused(await stranger.get("/v1/codes", params=tenant.query)) == (401, "unauthenticated")


def test_the_digest_of_a_secret_is_not_shown() -> None:
    """A log may show the caller of a request."""
    assert "digest" not in repr(ServerKey("key_1", "org_1", "prj_1", frozenset(), b"digest"))


async def test_every_character_of_a_secret_counts(tenant: Tenant) -> None:
    """Upper and lower case differ, and the secret is never echoed."""
    key = await tenant.make_key()
    for wrong in (key["secret"][:-1], key["secret"] + "A", key["secret"].swapcase().replace("XAK", "xak")):
        answer = await tenant.api.other(token=wrong).get("/v1/codes", params=tenant.query)
        assert refused(answer) == (401, "unauthenticated")
        assert wrong not in answer.body.decode()


async def test_a_key_is_refused_from_the_millisecond_of_its_expiry(api: Api, tenant: Tenant) -> None:
    api.clock.freeze()
    server = tenant.with_key(await tenant.make_key(expires_in_days=1))
    api.clock.advance(days=1, milliseconds=-1)
    assert (await server.api.get("/v1/codes", params=tenant.query)).status == 200
    api.clock.advance(milliseconds=1)
    assert refused(await server.api.get("/v1/codes", params=tenant.query)) == (401, "unauthenticated")


async def test_a_key_ends_with_its_project(tenant: Tenant, rival: Rival) -> None:
    server = tenant.with_key(await tenant.make_key())
    await rival.run("DELETE FROM projects")
    assert refused(await server.api.get("/v1/codes", params=tenant.query)) == (401, "unauthenticated")
    assert await rival.rows("SELECT 1 FROM api_key_digests") == []


async def test_a_key_works_where_people_sign_in(people: People, tenant: Tenant) -> None:
    """And also where nobody can."""
    key = await tenant.make_key()
    answer = await people.api.other(token=key["secret"]).get("/v1/codes", params=tenant.query)
    assert answer.status == 200


async def test_a_key_needs_no_operator(tenant: Tenant, database_url: Secret) -> None:
    key = await tenant.make_key()
    async with running_core(core_settings(database_url, operator_token=None), tenant.api.clock) as core:
        assert (await core.other(token=key["secret"]).get("/v1/codes", params=tenant.query)).status == 200


async def test_a_secret_is_in_no_log(tenant: Tenant, capfd: pytest.CaptureFixture[str]) -> None:
    """Created, used, rotated or refused: it is never logged."""
    key = await tenant.make_key()
    path = f"/v1/api-keys/{key['id']}/secret"
    rotated = (await tenant.api.post(path, params=tenant.query)).json
    for secret in (key["secret"], rotated["secret"]):
        await tenant.api.other(token=secret).get("/v1/codes", params=tenant.query)
    captured = "".join(capfd.readouterr())
    assert "/v1/api-keys/{api_key_id}/secret" in captured, "the log is what is read here"
    for secret in (key["secret"], rotated["secret"]):
        assert secret[4:] not in captured
