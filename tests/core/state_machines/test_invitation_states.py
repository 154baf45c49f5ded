"""An invitation is pending, accepted, revoked or expired, and only the right person accepts a pending one.

Source: API v1, "Other state sets", "Invitation lifecycle"; contract, sections 2 and 3.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule
from support.api.app_machine import AppMachine, run_machine
from support.tenancy.people import People
from support.tenancy.tenant import Tenant

from soundmark.kit.text.timestamps import parse_timestamp

pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
MILLISECOND = timedelta(milliseconds=1)
PERSONS = st.sampled_from(["ada", "bea"])


@dataclass
class Invitation:
    """What must be true of one invitation; `end` is `accepted` or `revoked`."""

    id: str
    secret: str
    person: str
    role: str
    expires_at: datetime
    end: str | None = None

    def status(self, now: datetime) -> str:
        return self.end or ("expired" if now >= self.expires_at else "pending")


class Invitations(AppMachine):
    """Invitations of one organisation to two people, who accept each other's as well as their own."""

    invitations = Bundle("invitations")

    def __init__(self, loop: asyncio.AbstractEventLoop, people: People) -> None:
        super().__init__(loop, people.api.clock)
        self.people = people
        self.model: list[Invitation] = []
        self.members = {"owner": "owner"}

    @initialize()
    def begin(self) -> None:
        self.organization = self.wait(self.people.tenant_of("owner"))

    @property
    def tenant(self) -> Tenant:
        """The organisation as its owner sees it, with a token of this moment."""
        return Tenant(self.people.person("owner"), self.organization.organization_id, self.organization.project_id)

    @rule(target=invitations, person=PERSONS, role=st.sampled_from(["admin", "member"]), days=st.integers(1, 2))
    def invite(self, person: str, role: str, days: int) -> Invitation:
        made = self.wait(self.tenant.make_invitation(email=f"{person}@example.org", role=role, expires_in_days=days))
        invitation = Invitation(made["id"], made["secret"], person, role, parse_timestamp(made["expires_at"]))
        self.model.append(invitation)
        return invitation

    @rule(invitation=invitations)
    def revoke(self, invitation: Invitation) -> None:
        path = f"/v1/member-invitations/{invitation.id}/revoke"
        answer = self.wait(self.tenant.api.post(path, params=self.tenant.query))
        if invitation.status(self.now) == "pending":
            invitation.end = "revoked"
            assert (answer.status, answer.json["status"]) == (200, "revoked")
        else:
            assert (answer.status, answer.code) == (409, "invitation_not_pending")

    @rule(invitation=invitations, person=PERSONS, has_mfa=st.booleans())
    def accept(self, invitation: Invitation, person: str, has_mfa: bool) -> None:
        api = self.people.person(person, **({} if has_mfa else {"acr": "1"}))
        answer = self.wait(api.post("/v1/member-invitations/accept", json={"token": invitation.secret}))
        if invitation.status(self.now) != "pending" or invitation.person != person:
            assert (answer.status, answer.code) == (400, "invitation_invalid")
        elif invitation.role == "admin" and not has_mfa:
            assert (answer.status, answer.code) == (403, "mfa_required")
        elif person in self.members:
            assert (answer.status, answer.code) == (409, "already_a_member")
        else:
            assert (answer.status, answer.json["role"]) == (200, invitation.role)
            invitation.end = "accepted"
            self.members[person] = invitation.role

    @rule(person=PERSONS)
    def remove(self, person: str) -> None:
        answer = self.wait(self.tenant.api.delete(f"/v1/members/{person}", params=self.tenant.query))
        assert answer.status == (204 if self.members.pop(person, None) else 404)

    @rule(invitation=invitations, is_over=st.booleans())
    def reach_the_end(self, invitation: Invitation, is_over: bool) -> None:
        self.advance_to(invitation.expires_at - (timedelta() if is_over else MILLISECOND))

    @invariant()
    def the_lists_show_every_invitation_and_every_member(self) -> None:
        params = {**self.tenant.query, "limit": "100"}
        page = self.wait(self.tenant.api.get("/v1/member-invitations", params=params))
        shown = {invitation["id"]: invitation["status"] for invitation in page.json["data"]}
        assert shown == {invitation.id: invitation.status(self.now) for invitation in self.model}
        members = self.wait(self.tenant.api.get("/v1/members", params=params)).json["data"]
        assert {member["subject_id"]: member["role"] for member in members} == self.members


async def test_every_walk_through_the_states_of_invitations_is_as_specified(people: People) -> None:
    await run_machine(lambda loop: Invitations(loop, people), examples=25, steps=15)
