"""An integration is active or revoked for good; its newest secret signs events while it is active.

Source: API v1, "States and transitions", "Audience integration".
"""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, rule
from support.api.app_machine import AppMachine, run_machine
from support.api.core_client import Answer, Api
from support.audience.event_delivery import deliver_event, make_event
from support.tenancy.tenant import make_tenant

pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module inside strategies")
DEMO_RETENTION_DAYS_MAX = 14


@dataclass
class Integration:
    """What must be true of one integration."""

    id: str
    secrets: list[str] = field(repr=False)
    code: dict[str, Any] = field(repr=False)
    retention_days: int = 14
    events_count: int = 0
    is_revoked: bool = False

    @property
    def status(self) -> str:
        return "revoked" if self.is_revoked else "active"


class Integrations(AppMachine):
    """Demo integrations of one project, each with a Code that it measures."""

    integrations = Bundle("integrations")

    def __init__(self, loop: asyncio.AbstractEventLoop, api: Api) -> None:
        super().__init__(loop, api.clock)
        self.api = api
        self.model: list[Integration] = []

    @initialize()
    def begin(self) -> None:
        self.tenant = self.wait(make_tenant(self.api))

    @rule(target=integrations)
    def create(self) -> Integration:
        made = self.wait(self.tenant.make_integration())
        code = self.wait(self.tenant.make_code(audience={"enabled": True, "integration_id": made["id"]}))
        integration = Integration(made["id"], [made["hmac_secret"]], code)
        self.model.append(integration)
        return integration

    @rule(integration=integrations)
    def revoke(self, integration: Integration) -> None:
        answer = self._change(integration, "revoke")
        integration.is_revoked = True
        assert (answer.status, answer.json["status"]) == (200, "revoked")

    @rule(integration=integrations)
    def rotate_secret(self, integration: Integration) -> None:
        answer = self._change(integration, "secret")
        if self._is_done(integration, answer):
            integration.secrets.append(answer.json["hmac_secret"])

    @rule(integration=integrations)
    def replace_core_key(self, integration: Integration) -> None:
        self._is_done(integration, self._change(integration, "core-key"))

    @rule(integration=integrations, days=st.integers(1, DEMO_RETENTION_DAYS_MAX + 1))
    def change_retention(self, integration: Integration, days: int) -> None:
        answer = self._change(integration, "retention", json={"retention_days": days})
        if days > DEMO_RETENTION_DAYS_MAX:
            assert (answer.status, answer.code) == (422, "validation_failed")
        elif self._is_done(integration, answer):
            assert answer.json["previous_retention_days"] == integration.retention_days
            integration.retention_days = days

    @rule(integration=integrations, is_newest=st.booleans())
    def deliver(self, integration: Integration, is_newest: bool) -> None:
        secret = integration.secrets[-1 if is_newest else 0]
        event = self.wait(make_event(self.tenant, integration.code))
        answer = self.wait(deliver_event(self.api, event, secret))
        if secret != integration.secrets[-1]:
            assert (answer.status, answer.code) == (401, "unauthenticated")
        elif integration.is_revoked:
            assert (answer.status, answer.code) == (409, "integration_revoked")
        else:
            assert (answer.status, answer.json["status"]) == (201, "recorded")
            integration.events_count += 1

    @rule(integration=integrations)
    def report(self, integration: Integration) -> None:
        """Reports remain available after revocation."""
        self.clock.advance(milliseconds=1)  # A report ends before the moment of its request.
        path = f"/v1/audience/reports/{integration.id}"
        answer = self.wait(self.api.get(path, params=self.tenant.in_project))
        assert (answer.status, answer.json["events"]) == (200, integration.events_count)

    @rule(minutes=st.sampled_from([1, 8]))
    def wait_for_minutes(self, minutes: int) -> None:
        self.clock.advance(minutes=minutes)

    @invariant()
    def the_list_shows_the_status_of_every_integration(self) -> None:
        params = {**self.tenant.in_project, "limit": "100"}
        page = self.wait(self.api.get("/v1/audience/integrations", params=params))
        shown = {each["id"]: (each["status"], each["retention_days"]) for each in page.json["data"]}
        assert shown == {each.id: (each.status, each.retention_days) for each in self.model}

    def _change(self, integration: Integration, action: str, **body: Any) -> Answer:
        return self.wait(self.tenant.change_integration(action, integration.id, **body))

    def _is_done(self, integration: Integration, answer: Answer) -> bool:
        """Return whether the change was made, as it must be unless the integration is revoked."""
        if integration.is_revoked:
            assert (answer.status, answer.code) == (409, "integration_revoked")
        else:
            assert answer.status == 200
        return not integration.is_revoked


async def test_every_walk_through_the_states_of_integrations_is_as_specified(api: Api) -> None:
    await run_machine(lambda loop: Integrations(loop, api), examples=20, steps=12)
