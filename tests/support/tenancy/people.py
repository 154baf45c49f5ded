"""A Core that people sign in to with an identity provider."""

from dataclasses import dataclass
from typing import Any

from support.api.core_client import Api
from support.database.rival import Rival
from support.identity.oidc_issuer import OidcIssuer
from support.tenancy.tenant import Tenant, make_tenant


@dataclass(frozen=True)
class People:
    """The people that the issuer knows, as callers of one Core."""

    api: Api
    issuer: OidcIssuer

    def person(self, subject_id: str, **claims: Any) -> Api:
        """Return a client for a person who just logged in with a second factor, except for `claims`."""
        return self.api.other(token=self.issuer.token(subject_id, **claims))

    async def tenant_of(self, subject_id: str) -> Tenant:
        """Create an organisation with one project that the person owns."""
        return await make_tenant(self.person(subject_id))

    async def member(self, tenant: Tenant, rival: Rival, subject_id: str, role: str) -> Tenant:
        """Give a person this role and return the organisation as they see it."""
        await tenant.make_member(rival, subject_id, role)
        return Tenant(self.person(subject_id), tenant.organization_id, tenant.project_id)
