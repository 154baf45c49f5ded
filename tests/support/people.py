"""A Core that people sign in to with an identity provider."""

from dataclasses import dataclass
from typing import Any

from support.core_client import Api
from support.oidc_issuer import OidcIssuer
from support.rival import Rival
from support.tenant import Tenant, make_tenant


@dataclass(frozen=True)
class People:
    """Whoever the issuer knows, as callers of one Core."""

    api: Api
    issuer: OidcIssuer

    def person(self, subject_id: str, **claims: Any) -> Api:
        """One person after a login with a second factor just now, but for `claims`."""
        return self.api.other(token=self.issuer.token(subject_id, **claims))

    async def tenant_of(self, subject_id: str) -> Tenant:
        """A new organisation with one project that the person owns."""
        return await make_tenant(self.person(subject_id))

    async def member(self, tenant: Tenant, rival: Rival, subject_id: str, role: str) -> Tenant:
        """The organisation as a person sees it who has this role there from now on."""
        await tenant.make_member(rival, subject_id, role)
        return Tenant(self.person(subject_id), tenant.organization_id, tenant.project_id)
