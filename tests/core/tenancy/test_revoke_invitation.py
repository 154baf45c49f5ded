"""`POST /v1/member-invitations/{invitation_id}/revoke`: only pending ones, and nobody joins with them afterwards."""

import pytest
from support.api.core_client import Answer, Api
from support.database.rival import Rival
from support.tenancy.people import People
from support.tenancy.tenant import Tenant


async def revoke(tenant: Tenant, invitation_id: str) -> Answer:
    return await tenant.api.post(f"/v1/member-invitations/{invitation_id}/revoke", params=tenant.query)


async def test_the_answer_is_the_invitation_revoked(tenant: Tenant, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    answer = await revoke(tenant, invitation["id"])
    secret = invitation.pop("secret")
    assert (answer.status, answer.json) == (200, {**invitation, "status": "revoked"})
    assert secret not in answer.body.decode()
    expected = [("user operator", None, {"invitation_id": invitation["id"], "role": "member"})]
    assert await rival.audited("invitation.revoked") == expected


async def test_a_second_revoke_is_refused(tenant: Tenant, rival: Rival) -> None:
    invitation = await tenant.make_invitation()
    await revoke(tenant, invitation["id"])
    answer = await revoke(tenant, invitation["id"])
    assert (answer.status, answer.code) == (409, "invitation_not_pending")
    assert len(await rival.audited("invitation.revoked")) == 1


@pytest.mark.parametrize(("milliseconds", "status"), [(-1, 200), (0, 409)])
async def test_an_expired_invitation_is_not_pending(api: Api, tenant: Tenant, milliseconds: int, status: int) -> None:
    api.clock.freeze()
    invitation = await tenant.make_invitation(expires_in_days=1)
    api.clock.advance(days=1)
    api.clock.advance(milliseconds=milliseconds)
    assert (await revoke(tenant, invitation["id"])).status == status


async def test_an_accepted_invitation_is_not_pending(people: People) -> None:
    tenant = await people.tenant_of("owner")
    invitation = await tenant.make_invitation()
    ada = people.person("ada", email="ada@example.org")
    assert (await ada.post("/v1/member-invitations/accept", json={"token": invitation["secret"]})).status == 200
    answer = await revoke(tenant, invitation["id"])
    assert (answer.status, answer.code) == (409, "invitation_not_pending")


async def test_of_a_revoke_and_an_acceptance_at_once_one_wins(people: People, rival: Rival) -> None:
    """The one that gets the row first."""
    tenant = await people.tenant_of("owner")
    invitation = await tenant.make_invitation()
    async with rival.committing("UPDATE invitations SET accepted_at = now()"):
        revoking = await rival.while_waiting(revoke(tenant, invitation["id"]))
    assert (await revoking).code == "invitation_not_pending"
    assert await rival.rows("SELECT revoked_at FROM invitations") == [(None,)]


async def test_expiry_is_judged_after_the_wait_for_the_row(api: Api, tenant: Tenant, rival: Rival) -> None:
    invitation = await tenant.make_invitation(expires_in_days=1)
    async with rival.holding("SELECT 1 FROM invitations FOR UPDATE"):
        revoking = await rival.while_waiting(revoke(tenant, invitation["id"]))
        api.clock.advance(days=1)
    assert (await revoking).code == "invitation_not_pending"
