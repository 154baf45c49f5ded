"""`POST /v1/member-invitations/accept`: once, by the right person, and without information for anybody else."""

import asyncio
from typing import Any

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

WEAK = {"acr": "1", "amr": ["pwd"]}


@pytest.fixture
async def tenant(people: People) -> Tenant:
    """An organisation with one project."""
    return await people.tenant_of("owner")


@pytest.fixture
def ada(people: People) -> Api:
    """A person whose address was invited."""
    return people.person("ada", email="ada@example.org")


async def accept(person: Api, token: Any, **options: Any) -> Answer:
    return await person.post("/v1/member-invitations/accept", json={"token": token}, **options)


async def roles(rival: Rival) -> dict[str, str]:
    return dict(await rival.rows("SELECT subject_id, role FROM members"))


@pytest.mark.parametrize("role", ["admin", "member", "billing"])
async def test_the_person_is_a_member_with_that_role(tenant: Tenant, ada: Api, rival: Rival, role: str) -> None:
    invitation = await tenant.make_invitation(role=role)
    answer = await accept(ada, invitation["secret"])
    assert (answer.status, answer.json) == (200, {"organization_id": tenant.organization_id, "role": role})
    member = await rival.rows("SELECT email, role FROM members WHERE subject_id = 'ada'")
    assert member == [("ada@example.org", role)]
    shown = (await tenant.api.get("/v1/member-invitations", params=tenant.query)).json["data"]
    assert [entry["status"] for entry in shown] == ["accepted"]
    expected = [("user ada", None, {"invitation_id": invitation["id"], "role": role})]
    assert await rival.audited("invitation.accepted") == expected
    assert (await ada.get("/v1/projects", params=tenant.query)).status == 200


async def test_a_waiting_mail_is_cancelled(tenant: Tenant, ada: Api, rival: Rival) -> None:
    """The secret was handed over in another way; its sealed copy is destroyed."""
    invitation = await tenant.make_invitation()
    waiting = "UPDATE invitations SET delivery_status = 'pending', sealed_secret = 'x', delivery_due_at = now()"
    await rival.run(waiting)
    await accept(ada, invitation["secret"])
    assert await rival.rows("SELECT delivery_status, sealed_secret FROM invitations") == [("cancelled", None)]


@pytest.mark.parametrize("status", ["sent", "dead", "unavailable"])
async def test_a_finished_delivery_keeps_its_status(tenant: Tenant, ada: Api, rival: Rival, status: str) -> None:
    invitation = await tenant.make_invitation()
    await rival.run("UPDATE invitations SET delivery_status = %s", status)
    await accept(ada, invitation["secret"])
    assert await rival.rows("SELECT delivery_status FROM invitations") == [(status,)]


async def test_every_refusal_is_one_and_the_same(
    api: Api, people: People, tenant: Tenant, ada: Api, rival: Rival
) -> None:
    """The holder of a token learns only that it does not work, byte for byte."""
    tokens = {
        "unknown": "xin_" + "A" * 43,
        "empty": "",
        "malformed": "xin_short",
        "not ascii": "xin_" + "ä" * 43,
        "with a null": "xin_\0" + "A" * 42,
        "of another kind": "xak_" + "A" * 43,
        "endless": "xin_" + "A" * 60_000,
    }
    for kind in ("revoked", "used", "of somebody else", "expired"):
        invitation = await tenant.make_invitation(
            email="eve@example.org" if kind == "of somebody else" else "ada@example.org",
            role="admin" if kind == "of somebody else" else "member",
            expires_in_days=1 if kind == "expired" else 14,
        )
        tokens[kind] = invitation["secret"]
        if kind == "revoked":
            path = f"/v1/member-invitations/{invitation['id']}/revoke"
            assert (await tenant.api.post(path, params=tenant.query)).status == 200
        if kind == "used":
            assert (await accept(ada, tokens["used"])).status == 200
            await rival.run("DELETE FROM members WHERE subject_id = 'ada'")
    api.clock.advance(days=1)
    # Also without a second factor: only the right person is told that it is missing.
    for person in (
        people.person("ada", email="ada@example.org"),
        people.person("ada", email="ada@example.org", **WEAK),
    ):
        answers = {
            kind: await accept(person, token, headers={"X-Request-Id": "same"}) for kind, token in tokens.items()
        }
        assert {(answer.status, answer.body) for answer in answers.values()} == {(400, answers["unknown"].body)}
        assert answers["unknown"].code == "invitation_invalid"
    assert set(await roles(rival)) == {"owner"}


async def test_a_token_is_a_text(ada: Api) -> None:
    answer = await accept(ada, None)
    assert (answer.status, answer.code) == (422, "validation_failed")


@pytest.mark.parametrize(
    ("invited", "verified"),
    [
        ("ada@example.org", "ADA@Example.ORG"),
        ("ärger@example.org", "ärGER@example.org"),
        ("ärger@example.org", "a\u0308rger@example.org"),
        ("ada@EXÄMPLE.org", "ada@xn--exmple-cua.org"),
    ],
)
async def test_an_address_is_case_insensitive_in_ascii(
    people: People, tenant: Tenant, invited: str, verified: str
) -> None:
    """However its letters are composed, and however its domain is spelled."""
    invitation = await tenant.make_invitation(email=invited)
    assert (await accept(people.person("ada", email=verified), invitation["secret"])).status == 200


LOOKING_ALIKE = [
    ("kim@example.org", "\u212aim@example.org"),
    ("sam@example.org", "ſam@example.org"),
    ("strasse@example.org", "straße@example.org"),
    ("ärger@example.org", "A\u0308RGER@example.org"),
    ("οδος@example.org", "οδοσ@example.org"),
    ("ｅva@example.org", "eva@example.org"),
]


async def test_letters_beyond_ascii_are_compared_as_they_are(people: People, tenant: Tenant, rival: Rival) -> None:
    """Case folding could equate the mailboxes of two people."""
    for invited, verified in (*LOOKING_ALIKE, *((two, one) for one, two in LOOKING_ALIKE)):
        invitation = await tenant.make_invitation(email=invited)
        answer = await accept(people.person("eve", email=verified), invitation["secret"])
        assert answer.code == "invitation_invalid", (invited, verified)
        assert set(await roles(rival)) == {"owner"}
        assert (await accept(people.person("ada", email=invited), invitation["secret"])).status == 200
        await rival.run("DELETE FROM members WHERE subject_id = 'ada'")


async def test_another_address_is_another_person(people: People, tenant: Tenant, rival: Rival) -> None:
    invitation = await tenant.make_invitation(email="ärger@example.org")
    for verified in (
        *("arger@example.org", "ärger@example.com", "ärger@sub.example.org", "ärger+x@example.org"),
        *("ä.rger@example.org", "ärger@example.org.", "ärger", "ärger@", "ärger@example.org,eve@example.org"),
    ):
        answer = await accept(people.person("eve", email=verified), invitation["secret"])
        assert answer.code in {"invitation_invalid", "unauthenticated", "email_not_verified"}, verified
    assert set(await roles(rival)) == {"owner"}


async def test_an_unverified_address_is_refused(people: People, tenant: Tenant, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    answer = await accept(people.person("ada", email="ada@example.org", email_verified=False), invitation["secret"])
    assert (answer.status, answer.code) == (403, "email_not_verified")
    assert set(await roles(rival)) == {"owner"}


async def test_an_administrator_needs_a_second_factor(people: People, tenant: Tenant, ada: Api, rival: Rival) -> None:
    """They may come back with one: the invitation is still pending."""
    invitation = await tenant.make_invitation(role="admin")
    weak = people.person("ada", email="ada@example.org", **WEAK)
    answer = await accept(weak, invitation["secret"])
    assert (answer.status, answer.code) == (403, "mfa_required")
    assert set(await roles(rival)) == {"owner"}
    assert (await accept(ada, invitation["secret"])).status == 200


@pytest.mark.parametrize("role", ["member", "billing"])
async def test_others_need_no_second_factor(people: People, tenant: Tenant, role: str) -> None:
    invitation = await tenant.make_invitation(role=role)
    assert (await accept(people.person("ada", email="ada@example.org", **WEAK), invitation["secret"])).status == 200


@pytest.mark.parametrize("role", ["owner", "member"])
async def test_a_member_keeps_their_role(tenant: Tenant, ada: Api, rival: Rival, role: str) -> None:
    """An owner who accepts an invitation as a member keeps the organisation."""
    invitation = await tenant.make_invitation()
    await tenant.make_member(rival, "ada", role)
    answer = await accept(ada, invitation["secret"])
    assert (answer.status, answer.code) == (409, "already_a_member")
    assert (await roles(rival))["ada"] == role
    assert await rival.rows("SELECT accepted_at FROM invitations") == [(None,)]
    assert await rival.audited("invitation.accepted") == []


async def test_of_two_acceptances_at_once_one_wins(people: People, tenant: Tenant, rival: Rival) -> None:
    """Two accounts with the same address: both wait for the row, and the second finds it used."""
    invitation = await tenant.make_invitation()
    persons = [people.person(subject_id, email="ada@example.org") for subject_id in ("ada", "double")]
    async with rival.holding("SELECT 1 FROM invitations FOR UPDATE"):
        accepting = [asyncio.create_task(accept(person, invitation["secret"])) for person in persons]
        await rival.until_someone_waits(2)
    answers = await asyncio.gather(*accepting)
    assert sorted(answer.status for answer in answers) == [200, 400]
    assert [answer.code for answer in answers if answer.status == 400] == ["invitation_invalid"]
    assert len(await roles(rival)) == 2
    assert len(await rival.audited("invitation.accepted")) == 1


async def test_of_two_invitations_accepted_at_once_by_one_person_one_wins(
    tenant: Tenant, ada: Api, rival: Rival
) -> None:
    one, other = await tenant.make_invitation(role="billing"), await tenant.make_invitation(role="admin")
    async with rival.holding("LOCK TABLE members IN EXCLUSIVE MODE"):
        accepting = [asyncio.create_task(accept(ada, invitation["secret"])) for invitation in (one, other)]
        await rival.until_someone_waits(2)
    answers = await asyncio.gather(*accepting)
    assert sorted(answer.status for answer in answers) == [200, 409]
    (won,) = [answer.json["role"] for answer in answers if answer.status == 200]
    assert (await roles(rival))["ada"] == won


async def test_an_invitation_that_is_revoked_meanwhile_is_invalid(tenant: Tenant, ada: Api, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    async with rival.committing("UPDATE invitations SET revoked_at = now()"):
        accepting = await rival.while_waiting(accept(ada, invitation["secret"]))
    assert (await accepting).code == "invitation_invalid"
    assert set(await roles(rival)) == {"owner"}


async def test_an_organisation_that_closes_meanwhile_takes_nobody(tenant: Tenant, ada: Api, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    async with rival.committing("UPDATE organizations SET deletion_requested_at = now()"):
        accepting = await rival.while_waiting(accept(ada, invitation["secret"]))
    assert (await accepting).code == "resource_deletion_in_progress"
    assert set(await roles(rival)) == {"owner"}


async def test_an_organisation_deleted_meanwhile_takes_nobody(tenant: Tenant, ada: Api, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    async with rival.committing("DELETE FROM organizations"):
        accepting = await rival.while_waiting(accept(ada, invitation["secret"]))
    assert (await accepting).code == "invitation_invalid"


async def test_expiry_is_judged_after_the_wait_for_the_row(tenant: Tenant, ada: Api, api: Api, rival: Rival) -> None:
    invitation = await tenant.make_invitation(expires_in_days=1)
    # The person's own token expires too, but is checked before the wait.
    async with rival.holding("SELECT 1 FROM invitations FOR UPDATE"):
        accepting = await rival.while_waiting(accept(ada, invitation["secret"]))
        api.clock.advance(days=1)
    assert (await accepting).code == "invitation_invalid"
    assert set(await roles(rival)) == {"owner"}
