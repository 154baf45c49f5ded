"""`POST /v1/member-invitations` and the list: a secret shown once, and who may invite whom."""

import hashlib
import re
from datetime import timedelta
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.kit.text.timestamps import format_timestamp


async def invite(tenant: Tenant, **changes: Any) -> Answer:
    return await tenant.api.post("/v1/member-invitations", json=tenant.invitation_body(**changes))


async def listed(tenant: Tenant, **params: Any) -> Any:
    answer = await tenant.api.get("/v1/member-invitations", params={**tenant.query, **params})
    assert answer.status == 200, answer.body
    return answer.json


async def test_the_answer_is_the_invitation_with_its_secret(api: Api, tenant: Tenant, rival: Rival) -> None:
    now = api.clock.freeze()
    answer = await invite(tenant, email="Ada@Example.org", role="billing")
    assert answer.status == 201
    identity, secret = answer.json["id"], answer.json["secret"]
    assert re.fullmatch(r"inv_[A-Za-z0-9_-]{22}", identity)
    assert re.fullmatch(r"xin_[A-Za-z0-9_-]{43}", secret)
    assert answer.json == {
        "id": identity,
        "organization_id": tenant.organization_id,
        "email": "Ada@example.org",
        "role": "billing",
        "status": "pending",
        "delivery_status": "unavailable",
        "created_at": format_timestamp(now),
        "expires_at": format_timestamp(now + timedelta(days=7)),
        "secret": secret,
    }
    expected = [("user operator", None, {"invitation_id": identity, "role": "billing"})]
    assert await rival.audited("invitation.created") == expected


async def test_the_secret_is_kept_as_a_digest_and_shown_once(tenant: Tenant, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    secret = invitation.pop("secret")
    assert await rival.rows("SELECT digest FROM invitation_digests") == [(hashlib.sha256(secret.encode()).digest(),)]
    assert (await listed(tenant))["data"] == [invitation]
    everything = await rival.rows(
        "SELECT row_to_json(i)::text FROM invitations i UNION SELECT metadata FROM audit_entries"
    )
    assert secret not in str(everything)


@pytest.mark.parametrize("days", [1, 14])
async def test_a_lifetime_is_1_to_14_days(api: Api, tenant: Tenant, days: int) -> None:
    now = api.clock.freeze()
    answer = await invite(tenant, expires_in_days=days)
    assert answer.json["expires_at"] == format_timestamp(now + timedelta(days=days))


@pytest.mark.parametrize("days", [0, 15, -1, 1.5, "7", None, True], ids=repr)
async def test_another_lifetime_is_refused(tenant: Tenant, days: Any) -> None:
    answer = await invite(tenant, expires_in_days=days)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/expires_in_days"]


@pytest.mark.parametrize("role", ["owner", "Admin", "", None, 1, ["member"]], ids=repr)
async def test_nobody_is_invited_as_an_owner_or_in_an_unknown_role(tenant: Tenant, role: Any) -> None:
    answer = await invite(tenant, role=role)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/role"]


@pytest.mark.parametrize(
    ("email", "kept"),
    [
        *((name, name) for name in ("ada@localhost", "ada@radio.test", "ada@mail.radio.local", "ada@studio.internal")),
        ("a@b.example", "a@b.example"),
        ("Ada+x@EXAMPLE.org", "Ada+x@example.org"),
        ("ÄRGER@EXÄMPLE.ORG", "ÄRGER@exämple.org"),
        ("a\u0308@example.org", "ä@example.org"),
        ("ada@xn--exmple-cua.org", "ada@exämple.org"),
        ("用户@例え.jp", "用户@例え.jp"),
    ],
)
async def test_an_address_is_stored_as_written(tenant: Tenant, email: str, kept: str) -> None:
    assert (await invite(tenant, email=email)).json["email"] == kept


@pytest.mark.parametrize(
    "email",
    [
        *("", "ada", "@example.org", "ada@", "ada@@example.org", "a b@example.org", " ada@example.org"),
        *("Ada <ada@example.org>", "ada@example..org", "ada@-example.org", "ada@[127.0.0.1]"),
        *("ada@example.org\r\nBcc: eve@example.org", "ada@example.org\n", "ada\0@example.org", "x" * 65 + "@a.org"),
        *("a@" + "x." * 130 + "org", None, 1, ["ada@example.org"], {}),
    ],
    ids=repr,
)
async def test_a_malformed_address_is_refused(tenant: Tenant, email: Any, rival: Rival) -> None:
    answer = await invite(tenant, email=email)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/email"]
    assert await rival.rows("SELECT id FROM invitations") == []


@pytest.mark.parametrize("missing", ["organization_id", "email", "role"])
async def test_a_required_member_is_required(tenant: Tenant, missing: str) -> None:
    body = tenant.invitation_body()
    del body[missing]
    answer = await tenant.api.post("/v1/member-invitations", json=body)
    assert (answer.code, answer.json["errors"][0]["pointer"]) == ("validation_failed", f"/{missing}")


async def test_an_unknown_member_is_refused(tenant: Tenant) -> None:
    answer = await invite(tenant, secret="xin_" + "A" * 43)
    assert (answer.code, answer.json["errors"][0]["pointer"]) == ("validation_failed", "/secret")


async def test_one_address_may_be_invited_again(tenant: Tenant) -> None:
    """The first mail may be lost, or its role wrong; each invitation is independent."""
    one, other = await tenant.make_invitation(), await tenant.make_invitation()
    assert one["secret"] != other["secret"]
    assert len((await listed(tenant))["data"]) == 2


@pytest.mark.parametrize(("inviting", "status"), [("owner", 201), ("admin", 403)])
async def test_only_an_owner_invites_an_administrator(people: People, rival: Rival, inviting: str, status: int) -> None:
    tenant = await people.tenant_of("owner")
    member = await people.member(tenant, rival, "other", inviting)
    answer = await invite(member, role="admin")
    assert answer.status == status
    if status == 403:
        assert answer.code == "forbidden"
        assert await rival.rows("SELECT id FROM invitations") == []
    for role in ("member", "billing"):
        assert (await invite(member, role=role)).status == 201


async def test_an_owner_who_is_demoted_meanwhile_invites_no_administrator(people: People, rival: Rival) -> None:
    tenant = await people.tenant_of("owner")
    async with rival.committing("UPDATE members SET role = 'admin' WHERE subject_id = 'owner'"):
        inviting = await rival.while_waiting(invite(tenant, role="admin"))
    answer = await inviting
    assert (answer.status, answer.code) == (403, "forbidden")
    assert await rival.rows("SELECT id FROM invitations") == []


async def test_a_member_who_is_removed_meanwhile_invites_nobody(people: People, rival: Rival) -> None:
    tenant = await people.tenant_of("owner")
    async with rival.committing("DELETE FROM members WHERE subject_id = 'owner'"):
        inviting = await rival.while_waiting(invite(tenant))
    answer = await inviting
    assert (answer.status, answer.code) == (404, "organization_not_found")
    assert await rival.rows("SELECT id FROM invitations") == []


async def test_a_core_that_dies_before_its_commit_invited_nobody(tenant: Tenant, rival: Rival) -> None:
    async with rival.holding("LOCK TABLE invitation_digests IN SHARE MODE"):
        inviting = await rival.while_waiting(invite(tenant))
        await rival.kill_waiting_sessions()
        answer = await inviting
    assert (answer.status, answer.code) == (503, "database_unavailable")
    assert await rival.rows("SELECT id FROM invitations") == []
    assert await rival.audited("invitation.created") == []


async def test_no_second_factor_is_required(people: People) -> None:
    """Contract, section 2."""
    tenant = await people.tenant_of("owner")
    weak = Tenant(people.person("owner", acr="1", amr=["pwd"]), tenant.organization_id, tenant.project_id)
    assert (await invite(weak)).status == 201


async def test_the_list_is_newest_first_and_has_pages(api: Api, tenant: Tenant) -> None:
    made = []
    for _ in range(3):
        made.append((await tenant.make_invitation())["id"])
        api.clock.advance(milliseconds=1)
    page = await listed(tenant, limit=2)
    rest = await listed(tenant, limit=2, cursor=page["next_cursor"])
    assert [entry["id"] for entry in page["data"] + rest["data"]] == made[::-1]
    assert rest["next_cursor"] is None


async def test_the_list_is_of_one_organisation(api: Api, tenant: Tenant) -> None:
    other = await make_tenant(api)
    await other.make_invitation()
    assert (await listed(tenant))["data"] == []


async def test_a_cursor_of_another_organisation_or_list_is_refused(api: Api, tenant: Tenant) -> None:
    other = await make_tenant(api)
    for _ in range(2):
        await other.make_invitation()
    cursor = (await listed(other, limit=1))["next_cursor"]
    for path, whose in (("/v1/member-invitations", tenant), ("/v1/projects", other)):
        answer = await api.get(path, params={**whose.query, "cursor": cursor})
        assert (answer.status, answer.code) == (422, "invalid_cursor")


async def test_the_list_shows_the_status_of_each(api: Api, tenant: Tenant) -> None:
    await tenant.make_invitation(expires_in_days=1)
    api.clock.advance(milliseconds=1)
    await tenant.make_invitation(expires_in_days=14)
    api.clock.advance(days=1)
    assert [entry["status"] for entry in (await listed(tenant))["data"]] == ["pending", "expired"]
    assert not [entry for entry in (await listed(tenant))["data"] if "secret" in entry]
