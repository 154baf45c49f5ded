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


@pytest.mark.parametrize("days", [0, 15, 1.5], ids=repr)
async def test_another_lifetime_is_refused(tenant: Tenant, days: Any) -> None:
    answer = await invite(tenant, expires_in_days=days)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/expires_in_days"]


@pytest.mark.parametrize("role", ["owner", "", ["member"]], ids=repr)
async def test_nobody_is_invited_as_an_owner_or_in_an_unknown_role(tenant: Tenant, role: Any) -> None:
    answer = await invite(tenant, role=role)
    assert (answer.status, answer.code) == (422, "validation_failed")
    assert [error["pointer"] for error in answer.json["errors"]] == ["/role"]


@pytest.mark.parametrize(
    ("email", "kept"),
    [
        ("a@b.example", "a@b.example"),
        ("Ada+x@EXAMPLE.org", "Ada+x@example.org"),
        ("ÄRGER@EXÄMPLE.ORG", "ÄRGER@exämple.org"),
        ("a\u0308@example.org", "ä@example.org"),
    ],
)
async def test_an_address_is_stored_as_written(tenant: Tenant, email: str, kept: str) -> None:
    assert (await invite(tenant, email=email)).json["email"] == kept


async def test_a_malformed_address_is_refused(tenant: Tenant, rival: Rival) -> None:
    for email in (
        *("", "ada", "@example.org", "ada@", "ada@@example.org", "a b@example.org", "Ada <ada@example.org>"),
        *("ada@example..org", "ada@[127.0.0.1]", "ada@example.org\r\nBcc: eve@example.org", "ada\0@example.org"),
        *("x" * 65 + "@a.org", "a@" + "x." * 130 + "org", None, ["ada@example.org"]),
    ):
        answer = await invite(tenant, email=email)
        assert (answer.status, answer.code) == (422, "validation_failed"), email
        assert [error["pointer"] for error in answer.json["errors"]] == ["/email"], email
    assert await rival.rows("SELECT id FROM invitations") == []


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
