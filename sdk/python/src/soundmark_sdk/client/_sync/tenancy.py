# Generated from `../_async/tenancy.py` by `make_blocking.py`: change that file, then run this program.
"""The organisation: its projects, API keys, members, invitations and audit log."""

from collections.abc import Collection, Iterator
from typing import Any, Literal

from soundmark_sdk.client._sync.group import Group
from soundmark_sdk.client.api_connection import Progress
from soundmark_sdk.client.calls import PAGE_SIZE_MAX, Call, make_call, make_get, quote_id
from soundmark_sdk.client.dispatcher import SaveTarget
from soundmark_sdk.client.records import (
    AllowedHosts,
    ApiKey,
    ApiKeyWithSecret,
    AuditEntry,
    AuditVerification,
    ClosurePreflight,
    Invitation,
    InvitationWithSecret,
    Joined,
    KeyScope,
    Member,
    Organization,
    Page,
    Project,
    Role,
)
from soundmark_sdk.client.requests import AuditFilters


class Organizations(Group):
    """Organisations, as their members see them. An API key may call none of these."""

    def create(self, name: str) -> Organization:
        """Create an organisation. The caller becomes its owner."""
        return self._sender.call(Organization, make_call("POST", "/v1/organizations", {"name": name}))

    def rename(self, name: str, *, organization_id: str | None = None) -> Organization:
        """Rename an organisation."""
        tenant = self._sender.choose_organization(organization_id)
        path = f"/v1/organizations/{quote_id(tenant['organization_id'])}"
        return self._sender.call(Organization, make_call("PATCH", path, {"name": name}, is_repeatable=True))

    def export(
        self, into: SaveTarget, *, organization_id: str | None = None, on_progress: Progress | None = None
    ) -> int:
        """Write the archive of an organisation into a file, and return its size in bytes.

        A path is replaced only by a complete archive; a file object may hold a part of one after a failure. What
        arrives is compared with the digest that the service states; `soundmark_sdk.verify_archive` verifies the rest.
        """
        tenant = self._sender.choose_organization(organization_id)
        path = f"/v1/organizations/{quote_id(tenant['organization_id'])}/export"
        return self._sender.save(Call("GET", path, is_repeatable=True, is_digested=True), into, on_progress)

    def closure_preflight(self, *, organization_id: str | None = None) -> ClosurePreflight:
        """Preview the deletion of an organisation: what it would delete, and what blocks it. Changes nothing."""
        tenant = self._sender.choose_organization(organization_id)
        path = f"/v1/organizations/{quote_id(tenant['organization_id'])}/closure-preflight"
        return self._sender.call(ClosurePreflight, make_get(path))

    def delete(
        self, confirmation: str, *, certificate_id: str | None = None, organization_id: str | None = None
    ) -> str:
        """Permanently delete an organisation and everything in it, and return the id of the certificate.

        `confirmation` is its full id. `certificate_id` is the id from the preflight, which is fetched if it is not
        given: if the response is lost, the certificate shows whether the deletion is complete. After a failure, the
        deletion can still continue, and the same call resumes it.
        """
        tenant = self._sender.choose_organization(organization_id)
        if certificate_id is None:
            certificate_id = (self.closure_preflight(**tenant)).certificate_id
        path = f"/v1/organizations/{quote_id(tenant['organization_id'])}"
        call = make_call("DELETE", path, {"confirmation": confirmation}, is_repeatable=True)
        return self._sender.delete_tenant(call, tenant["organization_id"], certificate_id)

    def page(self, *, limit: int = PAGE_SIZE_MAX, cursor: str | None = None) -> Page[Organization]:
        """Return one page of the organisations that the caller belongs to."""
        return self._sender.get_page(Organization, make_get("/v1/organizations", limit=limit, cursor=cursor))

    def list(self, *, page_size: int = PAGE_SIZE_MAX) -> Iterator[Organization]:
        """Yield every organisation that the caller belongs to."""
        return self._sender.iterate(Organization, make_get("/v1/organizations", limit=page_size))


class Projects(Group):
    """The projects of an organisation."""

    def create(self, name: str, *, organization_id: str | None = None) -> Project:
        """Create a project."""
        document = {**self._sender.choose_organization(organization_id), "name": name}
        return self._sender.call(Project, make_call("POST", "/v1/projects", document))

    def rename(self, name: str, *, organization_id: str | None = None, project_id: str | None = None) -> Project:
        """Rename a project."""
        tenant = self._sender.choose_project(organization_id, project_id)
        path = f"/v1/projects/{quote_id(tenant['project_id'])}"
        organization = tenant["organization_id"]
        call = make_call("PATCH", path, {"name": name}, is_repeatable=True, organization_id=organization)
        return self._sender.call(Project, call)

    def allowed_hosts(self, *, organization_id: str | None = None, project_id: str | None = None) -> AllowedHosts:
        """Return the hosts to which the intents of a project may lead."""
        tenant = self._sender.choose_project(organization_id, project_id)
        path = f"/v1/projects/{quote_id(tenant['project_id'])}/allowed-hosts"
        return self._sender.call(AllowedHosts, make_get(path, organization_id=tenant["organization_id"]))

    def put_allowed_hosts(
        self, hosts: Collection[str] | None, *, organization_id: str | None = None, project_id: str | None = None
    ) -> AllowedHosts:
        """Set the hosts to which the intents of a project may lead: `*.` and a name allows every name below it.

        None allows everything, an empty collection no link.
        """
        tenant = self._sender.choose_project(organization_id, project_id)
        path = f"/v1/projects/{quote_id(tenant['project_id'])}/allowed-hosts"
        document = {"hosts": None if hosts is None else list(hosts)}
        organization = tenant["organization_id"]
        call = make_call("PUT", path, document, is_repeatable=True, organization_id=organization)
        return self._sender.call(AllowedHosts, call)

    def export(
        self,
        into: SaveTarget,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        on_progress: Progress | None = None,
    ) -> int:
        """Write the archive of a project into a file, and return its size in bytes, as for an organisation."""
        tenant = self._sender.choose_project(organization_id, project_id)
        path = f"/v1/projects/{quote_id(tenant['project_id'])}/export"
        query = {"organization_id": tenant["organization_id"]}
        call = Call("GET", path, query, is_repeatable=True, is_digested=True)
        return self._sender.save(call, into, on_progress)

    def closure_preflight(
        self, *, organization_id: str | None = None, project_id: str | None = None
    ) -> ClosurePreflight:
        """Preview the deletion of a project: what it would delete, and what blocks it. Changes nothing."""
        tenant = self._sender.choose_project(organization_id, project_id)
        path = f"/v1/projects/{quote_id(tenant['project_id'])}/closure-preflight"
        return self._sender.call(ClosurePreflight, make_get(path, organization_id=tenant["organization_id"]))

    def delete(
        self,
        confirmation: str,
        *,
        certificate_id: str | None = None,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> str:
        """Permanently delete a project and everything in it, and return the id of the certificate.

        `confirmation` is the project's full id. Everything else is as for an organisation.
        """
        tenant = self._sender.choose_project(organization_id, project_id)
        if certificate_id is None:
            certificate_id = (self.closure_preflight(**tenant)).certificate_id
        path = f"/v1/projects/{quote_id(tenant['project_id'])}"
        organization = tenant["organization_id"]
        document = {"confirmation": confirmation}
        call = make_call("DELETE", path, document, is_repeatable=True, organization_id=organization)
        return self._sender.delete_tenant(call, tenant["project_id"], certificate_id)

    def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Project]:
        """Return one page of an organisation's projects."""
        tenant = self._sender.choose_organization(organization_id)
        call = make_get("/v1/projects", **tenant, limit=limit, cursor=cursor)
        return self._sender.get_page(Project, call)

    def list(self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX) -> Iterator[Project]:
        """Yield every project of an organisation."""
        tenant = self._sender.choose_organization(organization_id)
        yield from self._sender.iterate(Project, make_get("/v1/projects", **tenant, limit=page_size))


class ApiKeys(Group):
    """API keys, each of one project."""

    def create(
        self,
        scopes: Collection[KeyScope],
        *,
        expires_in_days: int | None = None,
        name: str | None = None,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> ApiKeyWithSecret:
        """Create a key, which lives for 90 days by default and 365 at most. Only this response contains its secret."""
        tenant = self._sender.choose_project(organization_id, project_id)
        document: dict[str, Any] = {**tenant, "scopes": sorted(scopes)}
        if expires_in_days is not None:
            document["expires_in_days"] = expires_in_days
        if name is not None:
            document["name"] = name
        return self._sender.call(ApiKeyWithSecret, make_call("POST", "/v1/api-keys", document))

    def rename(self, api_key_id: str, name: str | None, *, organization_id: str | None = None) -> ApiKey:
        """Rename a key, regardless of its status; None removes the name."""
        path = f"/v1/api-keys/{quote_id(api_key_id)}"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(ApiKey, make_call("PATCH", path, {"name": name}, is_repeatable=True, **tenant))

    def revoke(self, api_key_id: str, *, organization_id: str | None = None) -> ApiKey:
        """Revoke a key; a key that was revoked or has expired does not change."""
        path = f"/v1/api-keys/{quote_id(api_key_id)}/revoke"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(ApiKey, make_call("POST", path, is_repeatable=True, **tenant))

    def rotate_secret(self, api_key_id: str, *, organization_id: str | None = None) -> ApiKeyWithSecret:
        """Rotate the secret of an active key; the old one stops working. Only this response contains the new one."""
        path = f"/v1/api-keys/{quote_id(api_key_id)}/secret"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(ApiKeyWithSecret, make_call("POST", path, is_repeatable=False, **tenant))

    def page(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[ApiKey]:
        """Return one page of the keys of an organisation, or of one project."""
        tenant = self._sender.choose_organization(organization_id)
        call = make_get("/v1/api-keys", **tenant, project_id=project_id, limit=limit, cursor=cursor)
        return self._sender.get_page(ApiKey, call)

    def list(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[ApiKey]:
        """Yield every key of an organisation, or of one project."""
        tenant = self._sender.choose_organization(organization_id)
        call = make_get("/v1/api-keys", **tenant, project_id=project_id, limit=page_size)
        yield from self._sender.iterate(ApiKey, call)


class Members(Group):
    """The members of an organisation. An API key may call none of these."""

    def change_role(self, subject_id: str, role: Role, *, organization_id: str | None = None) -> Member:
        """Change the role of a member. Only an owner can appoint, change or dismiss owners and administrators."""
        path = f"/v1/members/{quote_id(subject_id)}"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(Member, make_call("PUT", path, {"role": role}, is_repeatable=True, **tenant))

    def remove(self, subject_id: str, *, organization_id: str | None = None) -> None:
        """Remove a member. Members can remove themselves, except for the last owner."""
        path = f"/v1/members/{quote_id(subject_id)}"
        tenant = self._sender.choose_organization(organization_id)
        self._sender.execute(make_call("DELETE", path, is_repeatable=False, **tenant))

    def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Member]:
        """Return one page of an organisation's members."""
        tenant = self._sender.choose_organization(organization_id)
        call = make_get("/v1/members", **tenant, limit=limit, cursor=cursor)
        return self._sender.get_page(Member, call)

    def list(self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX) -> Iterator[Member]:
        """Yield every member of an organisation."""
        tenant = self._sender.choose_organization(organization_id)
        yield from self._sender.iterate(Member, make_get("/v1/members", **tenant, limit=page_size))


class Invitations(Group):
    """Invitations to an organisation. An API key may call none of these."""

    def create(
        self,
        email: str,
        role: Literal["member", "billing", "admin"],
        *,
        expires_in_days: int | None = None,
        organization_id: str | None = None,
    ) -> InvitationWithSecret:
        """Invite a person. The secret is in this response and, if mail is configured, in the e-mail to them."""
        tenant = self._sender.choose_organization(organization_id)
        document: dict[str, Any] = {**tenant, "email": email, "role": role}
        if expires_in_days is not None:
            document["expires_in_days"] = expires_in_days
        return self._sender.call(InvitationWithSecret, make_call("POST", "/v1/member-invitations", document))

    def accept(self, token: str) -> Joined:
        """Join an organisation with an invitation to the caller's verified e-mail address."""
        return self._sender.call(Joined, make_call("POST", "/v1/member-invitations/accept", {"token": token}))

    def revoke(self, invitation_id: str, *, organization_id: str | None = None) -> Invitation:
        """Revoke a pending invitation."""
        path = f"/v1/member-invitations/{quote_id(invitation_id)}/revoke"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(Invitation, make_call("POST", path, is_repeatable=False, **tenant))

    def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Invitation]:
        """Return one page of an organisation's invitations, in every state."""
        tenant = self._sender.choose_organization(organization_id)
        call = make_get("/v1/member-invitations", **tenant, limit=limit, cursor=cursor)
        return self._sender.get_page(Invitation, call)

    def list(self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX) -> Iterator[Invitation]:
        """Yield every invitation of an organisation, in every state."""
        tenant = self._sender.choose_organization(organization_id)
        yield from self._sender.iterate(Invitation, make_get("/v1/member-invitations", **tenant, limit=page_size))


class AuditLog(Group):
    """The audit log of an organisation."""

    def page(
        self,
        filters: AuditFilters | None = None,
        *,
        organization_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[AuditEntry]:
        """Return one page of the entries that match the filters."""
        query = (filters or AuditFilters()).make_query()
        tenant = self._sender.choose_organization(organization_id)
        call = make_get("/v1/audit-log", **tenant, **query, limit=limit, cursor=cursor)
        return self._sender.get_page(AuditEntry, call)

    def list(
        self,
        filters: AuditFilters | None = None,
        *,
        organization_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[AuditEntry]:
        """Yield every entry that matches the filters."""
        query = (filters or AuditFilters()).make_query()
        tenant = self._sender.choose_organization(organization_id)
        yield from self._sender.iterate(AuditEntry, make_get("/v1/audit-log", **tenant, **query, limit=page_size))

    def download(
        self,
        into: SaveTarget,
        filters: AuditFilters | None = None,
        *,
        organization_id: str | None = None,
        form: Literal["ndjson", "csv"] = "ndjson",
        on_progress: Progress | None = None,
    ) -> int:
        """Write every entry that matches the filters into a file, and return its size in bytes."""
        query = {**self._sender.choose_organization(organization_id), **(filters or AuditFilters()).make_query()}
        accept = {"ndjson": "application/x-ndjson", "csv": "text/csv"}[form]
        call = Call("GET", "/v1/audit-log", query, is_repeatable=True, accept=accept)
        return self._sender.save(call, into, on_progress)

    def verify(self, *, organization_id: str | None = None) -> AuditVerification:
        """Ask the service to recompute the chain that seals the entries."""
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(AuditVerification, make_get("/v1/audit-log/verification", **tenant))
