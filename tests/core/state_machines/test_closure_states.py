"""An organisation or a project is open until its deletion is requested, and then on its way to be deleted, for good.

Source: API v1, "Other state sets", "Organisation closure", and "Organisation deletion rules"; contract, sections 7, 8.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from support.api.app_machine import AppMachine, run_machine
from support.api.core_client import Api
from support.audience.faults import core_beside, failing_audience
from support.billing.subscriptions import Buyer, make_plans
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.tenancy.closures import Subject
from support.tenancy.people import People
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.context import Context
from soundmark.core.domain.billing.card import CardSubscription
from soundmark.core.domain.billing.checkout import Checkout
from soundmark.core.features.tenancy.closure.jobs import resume_closures
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.text.timestamps import format_timestamp

pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
# The first owner asks a Core that cannot reach Audience, too.
CALLERS = st.sampled_from(["first_owner", "second_owner", "first_owner_without_audience"])
BILLING, PENDING, CLOSING = "deletion_billing_active", "deletion_operations_pending", "resource_deletion_in_progress"
UNREACHABLE = "audience_unavailable"
REQUESTED = (
    "INSERT INTO audit_entries (organization_id, id, project_id, action, actor_type, actor_id, outcome, metadata,"
    " created_at) VALUES (%s, %s, %s, 'audience.integration_revocation', 'user', 'operator', 'requested', '{}', %s)"
)


@dataclass
class Closing:
    """What must be true of an organisation or a project.

    `phase` is None while it is open, and `left` for a project that its organisation took along.
    """

    id: str
    phase: str | None = None
    requested_at: str | None = None
    certificate_id: str = ""
    pending: list[str] = field(default_factory=list)

    @property
    def is_deleted(self) -> bool:
        return self.phase in {"deleted", "left"}

    @property
    def is_under_way(self) -> bool:
        return self.phase in {"requested", "purged"}


@dataclass
class Card:
    """A card subscription; whether it renews itself is what closures are judged by."""

    checkout: Checkout
    state: CardSubscription
    subscription_id: str
    renews: bool


class Closures(AppMachine):
    """One organisation with two projects, which two people own."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, api: Api, severed: Api, people: People, rival: Rival, ctx: Context
    ) -> None:
        super().__init__(loop, api.clock)
        self.api, self.severed, self.people, self.rival, self.ctx = api, severed, people, rival, ctx
        self.entries_count = 0

    @initialize()
    def begin(self) -> None:
        self.card: Card | None = None
        self.checkouts: list[Checkout] = []
        self.is_seen_as_gone = False
        self.tenant = self.wait(make_tenant(self.api))
        self.wait(self.tenant.make_member(self.rival, "second-owner", "owner"))
        self.buyer = Buyer(self.tenant, self.rival, self.ctx)
        self.organization = Closing(self.tenant.organization_id)
        second = self.wait(self.api.make_project(self.organization.id, "Evening show"))
        self.projects = [Closing(self.tenant.project_id), Closing(second)]
        self.codes = {}
        for project in self.projects:
            tenant = Tenant(self.api, self.organization.id, project.id)
            self.codes[project.id] = self.wait(tenant.make_code(lifetime_s=10**8))["broadcast_token"]
            self.wait(tenant.make_integration())

    @precondition(lambda self: self.is_seen_as_gone)
    @rule()
    def begin_another(self) -> None:
        self.begin()

    # What stands in the way, and what no longer does.

    @precondition(lambda self: not self.organization.is_deleted)
    @rule(renews=st.booleans())
    def hear_whether_a_card_subscription_renews_itself(self, *, renews: bool) -> None:
        """The provider's word on what is there counts during a closure too, but nothing is granted."""
        if self.card is not None:
            self.card.renews = renews
            state = self.buyer.state(reference=self.card.state.reference, cancel_at_period_end=not renews)
            self.wait(self.buyer.apply(self.card.checkout, state))
            return
        checkout = self.wait(self.buyer.make_checkout("card"))
        state = self.buyer.state(cancel_at_period_end=not renews)
        granted = self.wait(self.buyer.apply(checkout, state))
        assert (granted is None) == self.organization.is_under_way
        if granted is not None:
            self.card = Card(checkout, state, granted.id, renews)

    @precondition(lambda self: not self.organization.is_deleted)
    @rule()
    def check_out(self) -> None:
        if self.organization.is_under_way:
            body = {"offer_id": "offer_card_plan_codes_studio"}
            answer = self.wait(self.api.post("/v1/billing/checkouts", params=self.tenant.query, json=body))
            assert (answer.status, answer.code) == (409, CLOSING)
        elif not self.list_checkouts():
            self.checkouts.append(self.wait(self.buyer.make_checkout("local")))

    @precondition(lambda self: not self.organization.is_deleted)
    @rule(place=st.integers(0, 1))
    def begin_or_end_an_operation_in_audience(self, place: int) -> None:
        project = self.projects[place]
        if project.pending:
            settled = "UPDATE audit_entries SET outcome = 'failed', finalised_at = created_at WHERE id = %s"
            self.wait(self.rival.run(settled, project.pending.pop()))
        elif project.phase is None and self.organization.phase is None:  # It would be refused otherwise.
            self.entries_count += 1
            project.pending.append(f"aud_{self.entries_count:08}{project.id[4:20]}")
            self.wait(self.rival.run(REQUESTED, self.organization.id, project.pending[0], project.id, self.now))

    @precondition(lambda self: self.list_checkouts())
    @rule()
    def wait_for_a_day(self) -> None:
        self.clock.advance(hours=24)

    # Deleting.

    @precondition(lambda self: not self.is_seen_as_gone)
    @rule(caller=CALLERS, is_confirmed=st.sampled_from([True, True, True, False]))
    def delete_the_organization(self, caller: str, *, is_confirmed: bool) -> None:
        self.delete(self.organization, caller, is_confirmed=is_confirmed)

    @precondition(lambda self: not self.is_seen_as_gone)
    @rule(place=st.integers(0, 1), caller=CALLERS, is_confirmed=st.sampled_from([True, True, True, False]))
    def delete_a_project(self, place: int, caller: str, *, is_confirmed: bool) -> None:
        self.delete(self.projects[place], caller, is_confirmed=is_confirmed)

    def delete(self, subject: Closing, caller: str, *, is_confirmed: bool) -> None:
        """Its answer is the first obstacle of those that the preflight has just named."""
        seen = self.seen_by(caller, subject)
        said = self.wait(seen.preflight())
        answer = self.wait(seen.delete(None if is_confirmed else "something else"))
        if said.status == 404:
            assert (answer.status, answer.code) == (404, self.find_missing(subject))
            return
        named = {each["code"] for each in said.json["blockers"]} - {UNREACHABLE if subject.phase == "purged" else ""}
        order = (PENDING, UNREACHABLE, BILLING) if subject.phase else (BILLING, CLOSING, PENDING, UNREACHABLE)
        refusal = next((code for code in order if code in named), None)
        if not is_confirmed and refusal != CLOSING:
            assert (answer.status, answer.code) == (422, "confirmation_mismatch")
            return
        status = {None: 204, UNREACHABLE: 503}.get(refusal, 409)
        assert (answer.status, answer.code if answer.status != 204 else None) == (status, refusal)
        if refusal is None:
            subject.certificate_id = answer.headers["location"].rpartition("/")[2]
            self.mark_deleted(subject)
        elif subject.phase or refusal not in {BILLING, CLOSING}:
            subject.requested_at = subject.requested_at or format_timestamp(self.now)
            subject.phase = "purged" if refusal == BILLING else subject.phase or "requested"

    @precondition(lambda self: self.organization.is_under_way)
    @rule()
    def run_the_job(self) -> None:
        """It completes what was purged, once its gates are open."""
        self.clock.advance(seconds=61)
        is_due = self.organization.phase == "purged" and not self.list_billing()
        assert self.wait(resume_closures(self.ctx)) == is_due
        if is_due:
            self.mark_deleted(self.organization)

    @precondition(lambda self: not self.is_seen_as_gone)
    @rule(place=st.integers(0, 2), caller=CALLERS)
    def preview(self, place: int, caller: str) -> None:
        subject = (self.organization, *self.projects)[place]
        answer = self.wait(self.seen_by(caller, subject).preflight())
        missing = self.find_missing(subject)
        if missing is not None:
            assert (answer.status, answer.code) == (404, missing)
            return
        assert answer.status == 200, answer.body
        subject.certificate_id = subject.certificate_id or answer.json["certificate_id"]
        assert answer.json["certificate_id"] == subject.certificate_id, "it is the same one from the start"
        assert answer.json["deletion_requested_at"] == subject.requested_at
        blockers = {each["code"]: sorted(each["ids"]) for each in answer.json["blockers"]}
        is_severed = caller == "first_owner_without_audience"
        assert blockers == self.list_blockers(subject) | ({UNREACHABLE: []} if is_severed else {})
        assert answer.json["can_delete"] is (not blockers)

    # What must be true.

    @invariant()
    def what_is_not_deleted_goes_on_and_the_rest_is_gone(self) -> None:
        for project in self.projects:
            answer = self.wait(self.api.resolve(self.codes[project.id]))
            assert answer.status == (404 if project.is_deleted else 200), answer.body

    @invariant()
    def a_certificate_is_there_once_the_deletion_is_complete(self) -> None:
        for subject in (self.organization, *self.projects):
            if subject.certificate_id:
                answer = self.wait(self.api.get(f"/v1/deletion-certificates/{subject.certificate_id}"))
                assert answer.status == (200 if subject.phase == "deleted" else 404)

    # The model.

    def seen_by(self, caller: str, subject: Closing) -> Subject:
        api = {
            "first_owner": self.api,
            "second_owner": self.people.person("second-owner"),
            "first_owner_without_audience": self.severed,
        }[caller]
        return Subject(api, self.organization.id, None if subject is self.organization else subject.id)

    def find_missing(self, subject: Closing) -> str | None:
        """Return the code with which a subject that is deleted is not found."""
        if self.organization.is_deleted:
            self.is_seen_as_gone = True
            return "organization_not_found"
        return "project_not_found" if subject.is_deleted else None

    def list_checkouts(self) -> list[str]:
        """Return the checkouts that may still be paid."""
        return [each.id for each in self.checkouts if self.now < each.created_at + timedelta(hours=24)]

    def list_billing(self) -> list[str]:
        """Return what keeps the organisation from being deleted."""
        renewing = [self.card.subscription_id] if self.card is not None and self.card.renews else []
        return renewing + self.list_checkouts()

    def list_pending(self, subject: Closing) -> list[str]:
        if subject is not self.organization:
            return subject.pending
        entries = [entry_id for project in self.projects for entry_id in project.pending]
        return entries + [project.id for project in self.projects if project.is_under_way]

    def list_blockers(self, subject: Closing) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        if subject is self.organization and self.list_billing():
            found[BILLING] = sorted(self.list_billing())
        if subject is not self.organization and subject.phase is None and self.organization.is_under_way:
            found[CLOSING] = []
        if self.list_pending(subject):
            found[PENDING] = sorted(self.list_pending(subject))
        return found

    def mark_deleted(self, subject: Closing) -> None:
        subject.phase = "deleted"
        if subject is self.organization:
            for project in self.projects:
                project.phase = project.phase or "left"


@pytest.fixture
async def severed(database_url: Secret, clock: FakeClock) -> AsyncIterator[Api]:
    """A Core on the same database that cannot reach Audience."""
    async with failing_audience("down") as url, core_beside(url, database_url, clock) as core:
        yield core


async def test_every_walk_through_the_states_of_closures_is_as_specified(
    api: Api, severed: Api, people: People, rival: Rival, work: Context
) -> None:
    await make_plans(rival)
    await run_machine(lambda loop: Closures(loop, api, severed, people, rival, work), examples=10, steps=20)
