"""An organisation with one project, and everything that a test may need in it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from soundmark.kit.text.timestamps import format_timestamp
from support.api.core_client import Answer, Api
from support.codes.measurements import make_measurement
from support.database.rival import Rival
from support.processes.secret_leaks import remember_secret

INTENT = {"type": "link", "action": "open", "resource": {"url": "https://example.org/ä", "n": [1, 2.5, None, True]}}


@dataclass(frozen=True)
class Tenant:
    """An organisation with one project, which the client's caller owns."""

    api: Api
    organization_id: str
    project_id: str

    @property
    def query(self) -> dict[str, str]:
        return {"organization_id": self.organization_id}

    def code_body(self, **changes: Any) -> dict[str, Any]:
        """Return a valid issuance body, except for `changes`."""
        return {
            "organization_id": self.organization_id,
            "project_id": self.project_id,
            "issuer": "Radio Nordlicht",
            "expires_at": format_timestamp(self.api.clock.now() + timedelta(days=1)),
            "intent": INTENT,
            **changes,
        }

    async def make_code(self, *, lifetime_s: float = 86400, **changes: Any) -> dict[str, Any]:
        expires_at = format_timestamp(self.api.clock.now() + timedelta(seconds=lifetime_s))
        answer = await self.api.post("/v1/codes", json=self.code_body(expires_at=expires_at, **changes))
        assert answer.status == 201, answer.body
        code: dict[str, Any] = answer.json
        return code

    async def list_codes(self) -> list[dict[str, Any]]:
        """Return the project's newest Codes, the newest first."""
        codes: list[dict[str, Any]] = (await self.api.get("/v1/codes", params=self.in_project)).json["data"]
        return codes

    async def show_code(self, xr_id: str) -> dict[str, Any]:
        code: dict[str, Any] = (await self.api.get(f"/v1/codes/{xr_id}", params=self.query)).json
        return code

    async def allow_hosts(self, hosts: list[str] | None) -> None:
        """Set the hosts that links of the project may lead to; None allows all."""
        path = f"/v1/projects/{self.project_id}/allowed-hosts"
        assert (await self.api.put(path, params=self.query, json={"hosts": hosts})).status == 200

    def campaign_body(self, **changes: Any) -> dict[str, Any]:
        """Return a valid campaign body, except for `changes`."""
        return {**self.query, "project_id": self.project_id, "name": "Tonight", **changes}

    async def make_campaign(self, name: str = "Tonight", **changes: Any) -> dict[str, Any]:
        """Create an active campaign, open unless `changes` say otherwise."""
        answer = await self.api.post("/v1/campaigns", json=self.campaign_body(name=name, **changes))
        assert answer.status == 201, answer.body
        campaign: dict[str, Any] = answer.json
        return campaign

    async def make_quota(self, rival: "Rival", monthly_code_quota: int) -> None:
        """Give the organisation a plan with this monthly quota."""
        plan_id = f"plan_of_{monthly_code_quota}"
        await rival.run(
            "INSERT INTO plans (id, name, product, monthly_code_quota, active, updated_at)"
            " VALUES (%s, %s, 'codes', %s, true, now()) ON CONFLICT DO NOTHING",
            plan_id,
            plan_id,
            monthly_code_quota,
        )
        await rival.run(
            "UPDATE code_entitlements SET plan_id = %s WHERE organization_id = %s", plan_id, self.organization_id
        )

    def key_body(self, **changes: Any) -> dict[str, Any]:
        """Return a valid API key body, except for `changes`."""
        return {
            "organization_id": self.organization_id,
            "project_id": self.project_id,
            "scopes": ["codes:read", "codes:write"],
            **changes,
        }

    async def make_key(self, **changes: Any) -> dict[str, Any]:
        answer = await self.api.post("/v1/api-keys", json=self.key_body(**changes))
        assert answer.status == 201, answer.body
        key: dict[str, Any] = answer.json
        return key

    def integration_body(self, **changes: Any) -> dict[str, Any]:
        """Return a valid integration body, except for `changes`."""
        return {**self.query, "project_id": self.project_id, "mode": "demo", "retention_days": 14, **changes}

    async def make_integration(self, **changes: Any) -> dict[str, Any]:
        answer = await self.api.post("/v1/audience/integrations", json=self.integration_body(**changes))
        assert answer.status == 201, answer.body
        integration: dict[str, Any] = answer.json
        remember_secret(integration["hmac_secret"])
        return integration

    async def give_cell(self, rival: "Rival", cell: str = "main") -> None:
        """Give the organisation its cell, as its first integration would."""
        await rival.run("UPDATE organizations SET audience_cell = %s WHERE id = %s", cell, self.organization_id)

    def webhook_body(self, **changes: Any) -> dict[str, Any]:
        """Return a valid webhook endpoint body, except for `changes`."""
        return {**self.query, "url": "https://consumer.example.org/webhooks", **changes}

    async def make_webhook_endpoint(self, **changes: Any) -> dict[str, Any]:
        answer = await self.api.post("/v1/webhook-endpoints", json=self.webhook_body(**changes))
        assert answer.status == 201, answer.body
        endpoint: dict[str, Any] = answer.json
        remember_secret(endpoint["secret"])
        return endpoint

    async def make_entitlement(
        self, rival: "Rival", mode: str = "contract", *, monthly_events: int = 5000, ends_at: datetime | None = None
    ) -> None:
        """Give the organisation a contract for the mode, and the entitlement that follows, in Core's database only."""
        await rival.run(
            "INSERT INTO subscriptions (organization_id, id, plan_id, product, audience_mode, provider, status,"
            " current_period_end, paid_through, cancel_at_period_end, monthly_quota, contract_reference, created_at,"
            " updated_at)"
            " VALUES (%s, %s, 'plan_audience_contract', 'audience', %s, 'contract', 'active', %s, %s, false, %s, %s,"
            " now(), now())",
            self.organization_id,
            f"bsu_{self.organization_id[4:18]}{mode[:8]}",
            mode,
            ends_at,
            ends_at,
            monthly_events,
            f"operator-{mode}-{self.organization_id}",
        )
        await rival.run(
            "INSERT INTO audience_entitlements VALUES (%s, %s, %s, %s, 1, now())",
            self.organization_id,
            mode,
            monthly_events,
            ends_at,
        )

    async def change_integration(self, action: str, integration_id: str, *, json: Any = None) -> Answer:
        """Carry out `revoke`, `secret`, `retention` or `core-key` in this project."""
        return await self.api.call(
            "PATCH" if action == "retention" else "POST",
            f"/v1/audience/integrations/{integration_id}/{action}",
            params=self.in_project,
            **({} if json is None else {"json": json}),
        )

    @property
    def in_project(self) -> dict[str, str]:
        return {**self.query, "project_id": self.project_id}

    def invitation_body(self, **changes: Any) -> dict[str, Any]:
        """Return a valid invitation body, except for `changes`."""
        return {"organization_id": self.organization_id, "email": "ada@example.org", "role": "member", **changes}

    async def make_invitation(self, **changes: Any) -> dict[str, Any]:
        answer = await self.api.post("/v1/member-invitations", json=self.invitation_body(**changes))
        assert answer.status == 201, answer.body
        invitation: dict[str, Any] = answer.json
        return invitation

    def with_key(self, key: dict[str, Any]) -> "Tenant":
        """Return the tenant as the server with this key sees it."""
        return Tenant(self.api.other(token=key["secret"], peer="203.0.113.9"), self.organization_id, self.project_id)

    async def make_member(self, rival: "Rival", subject_id: str, role: str) -> None:
        """Give a person a role, as an invitation would."""
        await rival.run(
            "INSERT INTO members (organization_id, subject_id, email, role, created_at) VALUES (%s, %s, %s, %s, %s)",
            self.organization_id,
            subject_id,
            f"{subject_id}@example.org",
            role,
            self.api.clock.now(),
        )

    async def certify(self, xr_id: str, **changes: Any) -> dict[str, Any]:
        """Have a valid measurement of the Code signed, except for `changes`."""
        answer = await self.ask_to_certify(xr_id, make_measurement(**changes))
        assert answer.status == 201, answer.body
        certificate: dict[str, Any] = answer.json
        return certificate

    async def ask_to_certify(self, xr_id: str, measurement: Any) -> Answer:
        return await self.api.post(f"/v1/codes/{xr_id}/decode-certificates", params=self.query, json=measurement)

    async def make_pack(self, campaign_id: str | None = None, **changes: Any) -> dict[str, Any]:
        """Have an offline pack made, valid for an hour, except for `changes`."""
        answer = await self.ask_for_pack(campaign_id=campaign_id, **changes)
        assert answer.status == 201, answer.body
        pack: dict[str, Any] = answer.json
        return pack

    async def ask_for_pack(self, **changes: Any) -> Answer:
        body = {"campaign_id": None, "valid_for_s": 3600, **changes}
        params = {**self.query, "project_id": self.project_id}
        return await self.api.post("/v1/offline-packs", params=params, json=body)

    async def revoke(self, xr_id: str) -> Answer:
        return await self.api.post(f"/v1/codes/{xr_id}/revoke", params=self.query)


async def make_tenant(api: Api) -> Tenant:
    """Create an organisation with one project as this caller."""
    organization_id = await api.make_organization()
    return Tenant(api, organization_id, await api.make_project(organization_id))


async def make_second_project(tenant: Tenant) -> Tenant:
    project_id = await tenant.api.make_project(tenant.organization_id, "Evening show")
    return Tenant(tenant.api, tenant.organization_id, project_id)
