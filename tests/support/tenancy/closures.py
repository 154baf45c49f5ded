"""Closing organisations and projects, and reading what is left of them."""

import base64
from dataclasses import dataclass
from typing import Any

import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from support.api.core_client import Answer, Api
from support.audience.event_delivery import deliver_event, make_event
from support.database.rival import Rival
from support.tenancy.tenant import Tenant


@dataclass(frozen=True)
class Subject:
    """An organisation or, if it has a project id, a project, as somebody who may delete it sees it."""

    api: Api
    organization_id: str
    project_id: str | None = None

    @property
    def id(self) -> str:
        return self.project_id or self.organization_id

    @property
    def path(self) -> str:
        return f"/v1/organizations/{self.id}" if self.project_id is None else f"/v1/projects/{self.id}"

    @property
    def params(self) -> dict[str, str]:
        return {} if self.project_id is None else {"organization_id": self.organization_id}

    async def delete(self, confirmation: str | None = None) -> Answer:
        """Delete it, confirming its full id unless `confirmation` is another text."""
        return await self.send_deletion({"confirmation": self.id if confirmation is None else confirmation})

    async def send_deletion(self, body: Any) -> Answer:
        return await self.api.call("DELETE", self.path, params=self.params, json=body)

    async def preflight(self) -> Answer:
        return await self.api.get(f"{self.path}/closure-preflight", params=self.params)

    async def certificate(self) -> dict[str, Any]:
        """Delete it, and return the certificate."""
        answer = await self.delete()
        assert answer.status == 204, answer.body
        certificate: dict[str, Any] = (await self.api.get(answer.headers["location"])).json
        return certificate


def organization_of(tenant: Tenant) -> Subject:
    return Subject(tenant.api, tenant.organization_id)


def project_of(tenant: Tenant) -> Subject:
    return Subject(tenant.api, tenant.organization_id, tenant.project_id)


SUBJECTS = {"organization": organization_of, "project": project_of}


@dataclass(frozen=True)
class Measured:
    """A measured Code and the secret of its integration."""

    code: dict[str, Any]
    hmac_secret: str


async def fill(tenant: Tenant) -> Measured:
    """Put one of everything into the tenant, and an event that Audience recorded."""
    campaign = await tenant.make_campaign()
    integration = await tenant.make_integration()
    audience = {"enabled": True, "integration_id": integration["id"]}
    broadcast = await tenant.make_code(campaign_id=campaign["id"])
    await tenant.certify(broadcast["xr_id"])
    await tenant.make_pack()
    await tenant.make_key()
    await tenant.make_invitation()
    code = await tenant.make_code(audience=audience)
    answer = await deliver_event(tenant.api, await make_event(tenant, code), integration["hmac_secret"])
    assert answer.status == 201, answer.body
    return Measured(code, integration["hmac_secret"])


async def list_mentions(rival: Rival, text: str) -> list[str]:
    """Return the tables in which a row contains this text, jobs included, found through the catalogue.

    JSON shows bytes as hexadecimal digits, so the text is looked for in that form too.
    """
    rows = await rival.rows("SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    found = []
    for (name,) in rows:
        mentions = f"SELECT 1 FROM {name} AS t WHERE to_jsonb(t)::text ~ %s LIMIT 1"
        if await rival.rows(mentions, f"{text}|{text.encode().hex()}"):
            found.append(name)
    return found


async def leave_operation_pending(rival: Rival, tenant: Tenant) -> str:
    """Put an operation in Audience into the audit log, without an outcome; return its id."""
    entry_id = "aud_pending_operation_123456"
    await rival.run(
        "INSERT INTO audit_entries (organization_id, id, project_id, action, actor_type, actor_id, outcome, metadata,"
        " created_at)"
        " VALUES (%s, %s, %s, 'audience.integration_revocation', 'user', 'operator', 'requested', '{}', %s)",
        tenant.organization_id,
        entry_id,
        tenant.project_id,
        tenant.api.clock.now(),
    )
    return entry_id


async def settle_operation(rival: Rival, entry_id: str) -> None:
    await rival.run("UPDATE audit_entries SET outcome = 'failed', finalised_at = created_at WHERE id = %s", entry_id)


async def verify_certificate(api: Api, certificate: dict[str, Any]) -> None:
    """Verify the signature with the published history of keys, and with code that shares nothing with Core's.

    Raises: InvalidSignature.
    """
    keys = (await api.get("/v1/keys/history")).json["keys"]
    (x,) = [key["x"] for key in keys if key["kid"] == certificate["key_id"]]
    unsigned = {name: value for name, value in certificate.items() if name != "signature"}
    Ed25519PublicKey.from_public_bytes(_decode(x)).verify(_decode(certificate["signature"]), rfc8785.dumps(unsigned))


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
