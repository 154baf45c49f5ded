"""An audit intent is requested, then completed or failed for good, whatever is lost between Core and Audience.

Source: API v1, "States and transitions", "Lifecycle audit intents".
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule
from support.api.app_machine import AppMachine, run_machine
from support.api.core_client import Answer, Api
from support.api.core_settings import core_settings
from support.database.rival import Rival
from support.processes.fake_clock import FakeClock
from support.processes.faulty_proxy import Fault, FaultyProxy
from support.processes.running_apps import running_core
from support.tenancy.tenant import Tenant, make_tenant

from soundmark.core.features.audience.integrations import jobs
from soundmark.kit.crypto.secret import Secret

pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
LOSSES: list[Fault] = ["request lost", "answer lost", "half an answer"]
IS_SETTLED_AFTER, IS_FAILED_AFTER = timedelta(minutes=1), timedelta(minutes=5)
BODIES: dict[str, Any] = {"revoke": None, "secret": None, "retention": {"retention_days": 7}, "core-key": None}


@dataclass
class Intent:
    """What must be true of one intent; `is_applied` says whether Audience did it."""

    created_at: datetime
    is_applied: bool
    outcome: str


class Intents(AppMachine):
    """Changes of integrations by a Core that now and then loses a call to Audience, or the answer to it."""

    integrations = Bundle("integrations")

    def __init__(self, loop: asyncio.AbstractEventLoop, core: Api, proxy: FaultyProxy, rival: Rival, work: Any) -> None:
        super().__init__(loop, core.clock)
        self.core, self.proxy, self.rival, self.work = core, proxy, rival, work
        self.model: dict[str, Intent] = {}
        self.revoked: set[str] = set()

    @initialize(target=integrations)
    def begin(self) -> str:
        self.tenant: Tenant = self.wait(make_tenant(self.core))
        return self.create()

    @rule(target=integrations)
    def create(self) -> str:
        integration: dict[str, Any] = self.wait(self.tenant.make_integration())
        self._expect("completed", is_applied=True)
        return str(integration["id"])

    @rule(fault=st.sampled_from(LOSSES))
    def create_in_vain(self, fault: Fault) -> None:
        """Whether or not the integration exists, its secret is lost with the answer."""
        body = self.tenant.integration_body()
        answer = self._lose(fault, "/v1/integrations", self.core.post("/v1/audience/integrations", json=body))
        assert (answer.status, answer.code) == (503, "audience_unavailable")
        self._expect("requested", is_applied=fault != "request lost")

    @rule(integration_id=integrations, action=st.sampled_from(sorted(BODIES)))
    def change(self, integration_id: str, action: str) -> None:
        answer = self.wait(self._change(integration_id, action))
        is_refused = integration_id in self.revoked and action != "revoke"
        assert answer.status == (409 if is_refused else 200)
        self._expect("failed" if is_refused else "completed", is_applied=not is_refused)
        if action == "revoke":
            self.revoked.add(integration_id)

    @rule(integration_id=integrations, action=st.sampled_from(sorted(BODIES)), fault=st.sampled_from(LOSSES))
    def change_in_vain(self, integration_id: str, action: str, fault: Fault) -> None:
        answer = self._lose(fault, f"/{action}", self._change(integration_id, action))
        assert (answer.status, answer.code) == (503, "audience_unavailable")
        is_refused = integration_id in self.revoked and action != "revoke"
        is_applied = fault != "request lost" and not is_refused
        self._expect("requested", is_applied=is_applied)
        if action == "revoke" and is_applied:
            self.revoked.add(integration_id)

    @rule()
    def settle(self) -> None:
        """Run the job, which asks Audience what it did and leaves out what may still be under way."""
        self.wait(jobs.settle_intents(self.work))
        for intent in self.model.values():
            age = self.now - intent.created_at
            if intent.outcome == "requested" and intent.is_applied and age > IS_SETTLED_AFTER:
                intent.outcome = "completed"
            elif intent.outcome == "requested" and not intent.is_applied and age >= IS_FAILED_AFTER:
                intent.outcome = "failed"

    @rule(seconds=st.sampled_from([1, 40, 100, 300]))
    def wait_for_seconds(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @invariant()
    def the_log_has_every_intent_with_its_outcome(self) -> None:
        expected = {intent_id: intent.outcome for intent_id, intent in self.model.items()}
        assert self._outcomes() == expected

    def _change(self, integration_id: str, action: str) -> Coroutine[Any, Any, Answer]:
        return self.tenant.change_integration(action, integration_id, json=BODIES[action])

    def _lose(self, fault: Fault, where: str, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Let the fault befall the next call to Audience whose path contains `where`."""
        self.proxy.where, self.proxy.faults = where, [fault]
        answer = self.wait(work)
        assert self.proxy.faults == [], "the call passed the proxy"
        return answer

    def _expect(self, outcome: str, *, is_applied: bool) -> None:
        """Add the one intent that is new in the log to the model."""
        (new,) = self._outcomes().keys() - self.model.keys()
        self.model[new] = Intent(self.now, is_applied, outcome)

    def _outcomes(self) -> dict[str, str]:
        statement = "SELECT id, outcome FROM audit_entries WHERE organization_id = %s AND action LIKE 'audience.%%'"
        return dict(self.wait(self.rival.rows(statement, self.tenant.organization_id)))


async def test_every_walk_through_the_states_of_intents_is_as_specified(
    database_url: Secret, measuring_url: str, clock: FakeClock, rival: Rival, work: Any
) -> None:
    with FaultyProxy(measuring_url) as proxy:
        async with running_core(core_settings(database_url, audience_url=proxy.url), clock) as core:
            await run_machine(lambda loop: Intents(loop, core, proxy, rival, work), examples=20, steps=12)
