"""The operations of the service, grouped by what they are about, for asyncio.

`blocking_groups` is made from this file by `sdk/python/make_blocking_groups.py`: change this one, then run that.
Every method raises ClientFailure (`ApiProblem` where the service refused) and, for what cannot be asked, ValueError.
Ids are those that the service gave; times carry a zone. Lists are newest first: `list` yields every record and fetches
pages of `page_size` as it goes, `page` returns one of them.

`organization_id` and `project_id` may be left out: then they are those that the client was made with, or those of the
server key in use. Where neither says them, TenantNotGiven (a ValueError) is raised.
"""

from collections.abc import AsyncIterator, Collection
from datetime import datetime
from typing import Any, BinaryIO, Literal

from soundmark_sdk.client.exchange import Call, Progress, get, segment, send, write_body
from soundmark_sdk.client.records import (
    ApiKey,
    ApiKeyWithSecret,
    AudienceMode,
    AudienceReport,
    AuditEntry,
    AuditVerification,
    Caller,
    Campaign,
    CampaignSummary,
    ChangedRetention,
    Code,
    CodeBatch,
    DryRun,
    Integration,
    IntegrationWithSecret,
    Invitation,
    InvitationWithSecret,
    Joined,
    KeyScope,
    LegacyReport,
    ListedCode,
    Member,
    Organization,
    Page,
    PlatformSettings,
    Project,
    ReplacedCoreKey,
    RevokedBatch,
    Role,
    SecretStatus,
    Setting,
    StoppedCampaign,
    Usage,
)
from soundmark_sdk.client.recovery import RememberedIssuance
from soundmark_sdk.client.sender import AsyncSender
from soundmark_sdk.client.wishes import (
    EVERYTHING,
    UNCHANGED,
    AuditFilters,
    CodeFilters,
    ReportFilters,
    Unchanged,
    Wish,
    writable,
)

# API v1, "Limits": the most that a page may hold.
PAGE_SIZE_MAX = 100


class _AsyncGroup:
    def __init__(self, sender: AsyncSender) -> None:
        self._sender = sender


class AsyncOrganizations(_AsyncGroup):
    """Organisations, as their members see them. Server keys have no part in these."""

    async def create(self, name: str) -> Organization:
        """Create an organisation that the caller owns."""
        return await self._sender.call(Organization, send("POST", "/v1/organizations", {"name": name}))

    async def rename(self, name: str, *, organization_id: str | None = None) -> Organization:
        """Give an organisation another name."""
        tenant = await self._sender.in_organization(organization_id)
        path = f"/v1/organizations/{segment(tenant['organization_id'])}"
        return await self._sender.call(Organization, send("PATCH", path, {"name": name}, is_repeatable=True))

    async def page(self, *, limit: int = PAGE_SIZE_MAX, cursor: str | None = None) -> Page[Organization]:
        """Return one page of the organisations that the caller belongs to."""
        return await self._sender.page(Organization, get("/v1/organizations", limit=limit, cursor=cursor))

    def list(self, *, page_size: int = PAGE_SIZE_MAX) -> AsyncIterator[Organization]:
        """Yield every organisation that the caller belongs to."""
        return self._sender.each(Organization, get("/v1/organizations", limit=page_size))


class AsyncProjects(_AsyncGroup):
    """The projects of an organisation."""

    async def create(self, name: str, *, organization_id: str | None = None) -> Project:
        """Create a project."""
        document = {**await self._sender.in_organization(organization_id), "name": name}
        return await self._sender.call(Project, send("POST", "/v1/projects", document))

    async def rename(self, name: str, *, organization_id: str | None = None, project_id: str | None = None) -> Project:
        """Give a project another name."""
        tenant = await self._sender.in_project(organization_id, project_id)
        path = f"/v1/projects/{segment(tenant['project_id'])}"
        organization = tenant["organization_id"]
        call = send("PATCH", path, {"name": name}, is_repeatable=True, organization_id=organization)
        return await self._sender.call(Project, call)

    async def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Project]:
        """Return one page of an organisation's projects."""
        tenant = await self._sender.in_organization(organization_id)
        call = get("/v1/projects", **tenant, limit=limit, cursor=cursor)
        return await self._sender.page(Project, call)

    async def list(
        self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX
    ) -> AsyncIterator[Project]:
        """Yield every project of an organisation."""
        tenant = await self._sender.in_organization(organization_id)
        async for project in self._sender.each(Project, get("/v1/projects", **tenant, limit=page_size)):
            yield project


class AsyncApiKeys(_AsyncGroup):
    """Server keys, each of one project."""

    async def create(
        self,
        scopes: Collection[KeyScope],
        *,
        expires_in_days: int | None = None,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> ApiKeyWithSecret:
        """Create a key; its secret is in this answer and nowhere else. It lives 90 days unless told, at most 365."""
        tenant = await self._sender.in_project(organization_id, project_id)
        document: dict[str, Any] = {**tenant, "scopes": sorted(scopes)}
        if expires_in_days is not None:
            document["expires_in_days"] = expires_in_days
        return await self._sender.call(ApiKeyWithSecret, send("POST", "/v1/api-keys", document))

    async def revoke(self, api_key_id: str, *, organization_id: str | None = None) -> ApiKey:
        """Revoke a key; one that is revoked or expired is answered unchanged."""
        path = f"/v1/api-keys/{segment(api_key_id)}/revoke"
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(ApiKey, send("POST", path, is_repeatable=True, **tenant))

    async def rotate_secret(self, api_key_id: str, *, organization_id: str | None = None) -> ApiKeyWithSecret:
        """Give an active key another secret, which is in this answer and nowhere else; the old one is void at once."""
        path = f"/v1/api-keys/{segment(api_key_id)}/secret"
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(ApiKeyWithSecret, send("POST", path, is_repeatable=False, **tenant))

    async def page(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[ApiKey]:
        """Return one page of an organisation's keys; with a project, of that one's."""
        tenant = await self._sender.in_organization(organization_id)
        call = get("/v1/api-keys", **tenant, project_id=project_id, limit=limit, cursor=cursor)
        return await self._sender.page(ApiKey, call)

    async def list(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> AsyncIterator[ApiKey]:
        """Yield every key of an organisation; with a project, of that one."""
        tenant = await self._sender.in_organization(organization_id)
        call = get("/v1/api-keys", **tenant, project_id=project_id, limit=page_size)
        async for key in self._sender.each(ApiKey, call):
            yield key


class AsyncMembers(_AsyncGroup):
    """The members of an organisation. Server keys have no part in these."""

    async def change_role(self, subject_id: str, role: Role, *, organization_id: str | None = None) -> Member:
        """Give a member a role. Only an owner makes, changes or unmakes owners and administrators."""
        path = f"/v1/members/{segment(subject_id)}"
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(Member, send("PUT", path, {"role": role}, is_repeatable=True, **tenant))

    async def remove(self, subject_id: str, *, organization_id: str | None = None) -> None:
        """Remove a member; everybody may leave, but the last owner."""
        path = f"/v1/members/{segment(subject_id)}"
        tenant = await self._sender.in_organization(organization_id)
        await self._sender.order(send("DELETE", path, is_repeatable=False, **tenant))

    async def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Member]:
        """Return one page of an organisation's members."""
        tenant = await self._sender.in_organization(organization_id)
        call = get("/v1/members", **tenant, limit=limit, cursor=cursor)
        return await self._sender.page(Member, call)

    async def list(
        self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX
    ) -> AsyncIterator[Member]:
        """Yield every member of an organisation."""
        tenant = await self._sender.in_organization(organization_id)
        async for member in self._sender.each(Member, get("/v1/members", **tenant, limit=page_size)):
            yield member


class AsyncInvitations(_AsyncGroup):
    """Invitations into an organisation. Server keys have no part in these."""

    async def create(
        self,
        email: str,
        role: Literal["member", "billing", "admin"],
        *,
        expires_in_days: int | None = None,
        organization_id: str | None = None,
    ) -> InvitationWithSecret:
        """Invite a person; the secret is in this answer and, where mail is set up, in the letter."""
        tenant = await self._sender.in_organization(organization_id)
        document: dict[str, Any] = {**tenant, "email": email, "role": role}
        if expires_in_days is not None:
            document["expires_in_days"] = expires_in_days
        return await self._sender.call(InvitationWithSecret, send("POST", "/v1/member-invitations", document))

    async def accept(self, token: str) -> Joined:
        """Join an organisation by an invitation for the caller's verified e-mail address."""
        return await self._sender.call(Joined, send("POST", "/v1/member-invitations/accept", {"token": token}))

    async def revoke(self, invitation_id: str, *, organization_id: str | None = None) -> Invitation:
        """Revoke a pending invitation."""
        path = f"/v1/member-invitations/{segment(invitation_id)}/revoke"
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(Invitation, send("POST", path, is_repeatable=False, **tenant))

    async def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Invitation]:
        """Return one page of an organisation's invitations, whatever became of them."""
        tenant = await self._sender.in_organization(organization_id)
        call = get("/v1/member-invitations", **tenant, limit=limit, cursor=cursor)
        return await self._sender.page(Invitation, call)

    async def list(
        self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX
    ) -> AsyncIterator[Invitation]:
        """Yield every invitation of an organisation, whatever became of it."""
        tenant = await self._sender.in_organization(organization_id)
        async for invitation in self._sender.each(Invitation, get("/v1/member-invitations", **tenant, limit=page_size)):
            yield invitation


class AsyncAuditLog(_AsyncGroup):
    """What was done in an organisation."""

    async def page(
        self,
        filters: AuditFilters | None = None,
        *,
        organization_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[AuditEntry]:
        """Return one page of the entries that the filters leave."""
        query = (filters or AuditFilters()).query()
        tenant = await self._sender.in_organization(organization_id)
        call = get("/v1/audit-log", **tenant, **query, limit=limit, cursor=cursor)
        return await self._sender.page(AuditEntry, call)

    async def list(
        self,
        filters: AuditFilters | None = None,
        *,
        organization_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> AsyncIterator[AuditEntry]:
        """Yield every entry that the filters leave."""
        query = (filters or AuditFilters()).query()
        tenant = await self._sender.in_organization(organization_id)
        async for entry in self._sender.each(AuditEntry, get("/v1/audit-log", **tenant, **query, limit=page_size)):
            yield entry

    async def download(
        self,
        into: BinaryIO,
        filters: AuditFilters | None = None,
        *,
        organization_id: str | None = None,
        form: Literal["ndjson", "csv"] = "ndjson",
        on_progress: Progress | None = None,
    ) -> int:
        """Write every entry that the filters leave into a file, complete, and return its size in bytes."""
        query = {**await self._sender.in_organization(organization_id), **(filters or AuditFilters()).query()}
        accept = {"ndjson": "application/x-ndjson", "csv": "text/csv"}[form]
        call = Call("GET", "/v1/audit-log", query, is_repeatable=True, accept=accept)
        return await self._sender.download(call, into, on_progress)

    async def verify(self, *, organization_id: str | None = None) -> AuditVerification:
        """Have the chain recomputed that the entries are sealed into."""
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(AuditVerification, get("/v1/audit-log/verification", **tenant))


class AsyncCodes(_AsyncGroup):
    """Codes. Issuing takes place exactly once for each call, whatever becomes of the connection.

    Each issuance has an idempotency key, remembered with the exact body until its answer is there. When an answer is
    lost, the service is asked what became of it, and the request is repeated under the same key only where it never
    took place. What cannot be settled in time raises a failure with `unsettled`: make the same call again, or hand
    that to `resume`, within 23 hours.
    """

    async def issue(self, wish: Wish, *, idempotency_key: str | None = None) -> Code:
        """Issue one Code. With a key of your own, a repeat of the same call answers the same Code for 24 hours."""
        body = write_body(await self._document(wish))
        return await self._sender.issue(Code, body, is_batch=False, idempotency_key=idempotency_key)

    async def issue_batch(self, wish: Wish, count: int, *, idempotency_key: str | None = None) -> CodeBatch:
        """Issue 1 to 100 Codes that differ in their ids and tokens only: all of them, or none."""
        body = write_body({**await self._document(wish), "count": count})
        return await self._sender.issue(CodeBatch, body, is_batch=True, idempotency_key=idempotency_key)

    async def dry_run(self, wish: Wish) -> DryRun:
        """Return what `issue` would come to now, without any effect."""
        call = send("POST", "/v1/codes", await self._document(wish), is_repeatable=True, dry_run="true")
        return await self._sender.call(DryRun, call)

    async def dry_run_batch(self, wish: Wish, count: int) -> DryRun:
        """Return what `issue_batch` would come to now, without any effect."""
        document = {**await self._document(wish), "count": count}
        call = send("POST", "/v1/codes/batch", document, is_repeatable=True, dry_run="true")
        return await self._sender.call(DryRun, call)

    async def unsettled(self) -> tuple[RememberedIssuance, ...]:
        """Return the issuances that were left without an answer, oldest first, none older than 23 hours."""
        return await self._sender.unsettled()

    async def resume(self, issuance: RememberedIssuance) -> tuple[Code, ...]:
        """Finish an issuance that was left without an answer, and return its Codes.

        It is recovered where it took place, and takes place now where it did not. ValueError for one of 23 hours.
        """
        if issuance.is_batch:
            return (await self._sender.resume(CodeBatch, issuance)).data
        return (await self._sender.resume(Code, issuance),)

    async def recover(self, issuance: RememberedIssuance) -> tuple[Code, ...]:
        """Return the Codes of an issuance that took place, without issuing; `code_issue_not_found` where it did not."""
        if issuance.is_batch:
            return (await self._sender.recover(CodeBatch, issuance)).data
        return (await self._sender.recover(Code, issuance),)

    async def forget(self, issuance: RememberedIssuance) -> None:
        """Remember an issuance no more, whatever became of it."""
        await self._sender.forget(issuance)

    async def page(
        self,
        filters: CodeFilters | None = None,
        *,
        organization_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[ListedCode]:
        """Return one page of the Codes that the filters leave."""
        query = (filters or CodeFilters()).query()
        tenant = await self._sender.in_organization(organization_id)
        call = get("/v1/codes", **tenant, **query, limit=limit, cursor=cursor)
        return await self._sender.page(ListedCode, call)

    async def list(
        self,
        filters: CodeFilters | None = None,
        *,
        organization_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> AsyncIterator[ListedCode]:
        """Yield every Code that the filters leave."""
        query = (filters or CodeFilters()).query()
        tenant = await self._sender.in_organization(organization_id)
        async for code in self._sender.each(ListedCode, get("/v1/codes", **tenant, **query, limit=page_size)):
            yield code

    async def show(self, xr_id: str, *, organization_id: str | None = None, project_id: str | None = None) -> Code:
        """Return one Code, in whatever state; with a project, only a Code of that one."""
        path = f"/v1/codes/{segment(xr_id)}"
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(Code, get(path, **tenant, project_id=project_id))

    async def revoke(self, xr_id: str, *, organization_id: str | None = None) -> Code:
        """Revoke one Code; one that is revoked or expired is answered unchanged."""
        path = f"/v1/codes/{segment(xr_id)}/revoke"
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(Code, send("POST", path, is_repeatable=True, **tenant))

    async def revoke_batch(
        self, xr_ids: Collection[str], *, organization_id: str | None = None, project_id: str | None = None
    ) -> RevokedBatch:
        """Revoke 1 to 100 Codes of one project, all of them or, where one is not there, none.

        After a lost answer it is asked for again, and what the first time revoked then counts as unchanged.
        """
        tenant = await self._sender.in_project(organization_id, project_id)
        document = {"project_id": tenant["project_id"], "xr_ids": [*xr_ids]}
        organization = tenant["organization_id"]
        call = send("POST", "/v1/codes/revoke-batch", document, is_repeatable=True, organization_id=organization)
        return await self._sender.call(RevokedBatch, call)

    async def wav(
        self, xr_id: str, into: BinaryIO, *, protocol: Literal[3, 4, 5] = 4, organization_id: str | None = None
    ) -> int:
        """Write the sound of an active Code into a file, and return its size in bytes."""
        call = Call(
            "GET",
            f"/v1/codes/{segment(xr_id)}/audio",
            {**await self._sender.in_organization(organization_id), "protocol": protocol},
            is_repeatable=True,
            accept="audio/wav",
        )
        return await self._sender.download(call, into, None)

    async def audio_bundle(  # noqa: PLR0913 - what is bundled, where to, and two options by name
        self,
        xr_ids: Collection[str],
        into: BinaryIO,
        *,
        protocol: Literal[3, 4, 5] = 4,
        on_progress: Progress | None = None,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> int:
        """Write a ZIP of the sounds of 1 to 100 active Codes into a file, and return its size in bytes."""
        call = Call(
            "POST",
            "/v1/codes/audio-bundle",
            await self._sender.in_project(organization_id, project_id),
            write_body({"xr_ids": [*xr_ids], "protocol": protocol}),
            is_repeatable=True,
            accept="application/zip",
        )
        return await self._sender.download(call, into, on_progress)

    async def _document(self, wish: Wish) -> dict[str, Any]:
        document = wish.document()  # First: what can never be issued is no reason to ask about the key.
        return {**await self._sender.in_project(wish.organization_id, wish.project_id), **document}


class AsyncCampaigns(_AsyncGroup):
    """The campaigns of a project."""

    async def create(
        self,
        name: str,
        *,
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> Campaign:
        """Create an active campaign."""
        dates = {"starts_at": writable(starts_at), "ends_at": writable(ends_at)}
        document = {
            **await self._sender.in_project(organization_id, project_id),
            "name": name,
            **{date: text for date, text in dates.items() if text is not None},
        }
        return await self._sender.call(Campaign, send("POST", "/v1/campaigns", document))

    async def update(
        self,
        campaign_id: str,
        *,
        name: str | Unchanged = UNCHANGED,
        starts_at: datetime | Unchanged | None = UNCHANGED,
        ends_at: datetime | Unchanged | None = UNCHANGED,
        organization_id: str | None = None,
    ) -> Campaign:
        """Change what is given; None clears a date. Codes that were issued before stay as they are."""
        given = {"name": name, "starts_at": starts_at, "ends_at": ends_at}
        document = {what: writable(value) for what, value in given.items() if not isinstance(value, Unchanged)}
        path = f"/v1/campaigns/{segment(campaign_id)}"
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(Campaign, send("PATCH", path, document, is_repeatable=True, **tenant))

    async def archive(self, campaign_id: str, *, organization_id: str | None = None) -> Campaign:
        """Let nothing be issued under a campaign any more; its Codes stay as they are. Again changes nothing."""
        path = f"/v1/campaigns/{segment(campaign_id)}/archive"
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(Campaign, send("POST", path, is_repeatable=True, **tenant))

    async def stop(self, campaign_id: str, *, organization_id: str | None = None) -> StoppedCampaign:
        """Archive a campaign and revoke every active Code of it, at once.

        After a lost answer it is asked for again, and then counts only what was left.
        """
        path = f"/v1/campaigns/{segment(campaign_id)}/stop"
        tenant = await self._sender.in_organization(organization_id)
        return await self._sender.call(StoppedCampaign, send("POST", path, is_repeatable=True, **tenant))

    async def summary(self, campaign_id: str, *, organization_id: str | None = None) -> CampaignSummary:
        """Return a campaign and its Codes, counted at one moment."""
        path = f"/v1/campaigns/{segment(campaign_id)}/summary"
        return await self._sender.call(
            CampaignSummary, get(path, **await self._sender.in_organization(organization_id))
        )

    async def page(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[Campaign]:
        """Return one page of a project's campaigns."""
        tenant = await self._sender.in_project(organization_id, project_id)
        return await self._sender.page(Campaign, get("/v1/campaigns", **tenant, limit=limit, cursor=cursor))

    async def list(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> AsyncIterator[Campaign]:
        """Yield every campaign of a project."""
        tenant = await self._sender.in_project(organization_id, project_id)
        async for campaign in self._sender.each(Campaign, get("/v1/campaigns", **tenant, limit=page_size)):
            yield campaign


class AsyncIntegrations(_AsyncGroup):
    """Audience integrations of a project. A server key needs `audience:write`, and to list them `audience:read`."""

    async def create(
        self,
        mode: AudienceMode,
        *,
        retention_days: int,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> IntegrationWithSecret:
        """Create an integration; its HMAC secret is in this answer and nowhere else.

        When the answer is lost, so is the secret: revoke what `list` shows, or give it another by `rotate_secret`.
        """
        tenant = await self._sender.in_project(organization_id, project_id)
        document = {**tenant, "mode": mode, "retention_days": retention_days}
        return await self._sender.call(IntegrationWithSecret, send("POST", "/v1/audience/integrations", document))

    async def revoke(
        self, integration_id: str, *, organization_id: str | None = None, project_id: str | None = None
    ) -> Integration:
        """Let nothing be measured by an integration any more; what was stays reportable. Again changes nothing."""
        path = f"/v1/audience/integrations/{segment(integration_id)}/revoke"
        tenant = await self._sender.in_project(organization_id, project_id)
        return await self._sender.call(Integration, send("POST", path, is_repeatable=True, **tenant))

    async def rotate_secret(
        self, integration_id: str, *, organization_id: str | None = None, project_id: str | None = None
    ) -> IntegrationWithSecret:
        """Give an active integration another HMAC secret, which is in this answer only; the old one is void at once."""
        path = f"/v1/audience/integrations/{segment(integration_id)}/secret"
        tenant = await self._sender.in_project(organization_id, project_id)
        return await self._sender.call(IntegrationWithSecret, send("POST", path, is_repeatable=False, **tenant))

    async def change_retention(
        self,
        integration_id: str,
        retention_days: int,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> ChangedRetention:
        """Keep what is measured for so many days from now on; what a shorter time leaves out is deleted at once.

        After a lost answer it is asked for again, and what the first time deleted is then not counted.
        """
        path = f"/v1/audience/integrations/{segment(integration_id)}/retention"
        tenant = await self._sender.in_project(organization_id, project_id)
        call = send("PATCH", path, {"retention_days": retention_days}, is_repeatable=True, **tenant)
        return await self._sender.call(ChangedRetention, call)

    async def replace_core_key(
        self, integration_id: str, *, organization_id: str | None = None, project_id: str | None = None
    ) -> ReplacedCoreKey:
        """Have an integration trust the key that Core signs with now; a rotation does so by itself."""
        path = f"/v1/audience/integrations/{segment(integration_id)}/core-key"
        tenant = await self._sender.in_project(organization_id, project_id)
        return await self._sender.call(ReplacedCoreKey, send("POST", path, is_repeatable=True, **tenant))

    async def page(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[Integration]:
        """Return one page of a project's integrations, revoked ones too."""
        tenant = await self._sender.in_project(organization_id, project_id)
        call = get("/v1/audience/integrations", **tenant, limit=limit, cursor=cursor)
        return await self._sender.page(Integration, call)

    async def list(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> AsyncIterator[Integration]:
        """Yield every integration of a project, revoked ones too."""
        tenant = await self._sender.in_project(organization_id, project_id)
        call = get("/v1/audience/integrations", **tenant, limit=page_size)
        async for integration in self._sender.each(Integration, call):
            yield integration


class AsyncAudience(_AsyncGroup):
    """What integrations measured. A server key needs the scope `audience:read`."""

    async def report(
        self,
        integration_id: str,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> AudienceReport:
        """Return what an integration measured, as of one moment; of a revoked one too, within its retention."""
        path = f"/v1/audience/reports/{segment(integration_id)}"
        query = {**await self._sender.in_project(organization_id, project_id), **filters.query()}
        return await self._sender.call(AudienceReport, get(path, **query))

    async def legacy_report(
        self,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> LegacyReport:
        """Return the daily aggregates of the time before XR v1; of the filters, only the period counts."""
        query = {**await self._sender.in_project(organization_id, project_id), **filters.period()}
        return await self._sender.call(LegacyReport, get("/v1/audience/legacy-report", **query))

    async def download_report(
        self,
        integration_id: str,
        into: BinaryIO,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> int:
        """Write the report as CSV into a file, a line for each number, and return its size in bytes."""
        path = f"/v1/audience/reports/{segment(integration_id)}"
        query = {**await self._sender.in_project(organization_id, project_id), **filters.query()}
        call = Call("GET", path, query, is_repeatable=True, accept="text/csv")
        return await self._sender.download(call, into, None)

    async def download_legacy_report(
        self,
        into: BinaryIO,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> int:
        """Write the legacy report as CSV into a file, a line for each number, and return its size in bytes."""
        query = {**await self._sender.in_project(organization_id, project_id), **filters.period()}
        call = Call("GET", "/v1/audience/legacy-report", query, is_repeatable=True, accept="text/csv")
        return await self._sender.download(call, into, None)


class AsyncPlatform(_AsyncGroup):
    """Platform settings, for administrators of the platform."""

    async def settings(self) -> PlatformSettings:
        """Return what is configured and where it comes from; of credentials only whether they are there."""
        return await self._sender.call(PlatformSettings, get("/v1/platform/settings"))

    async def put_secret(self, name: str, value: str) -> SecretStatus:
        """Put a credential in the place of the one before."""
        path = f"/v1/platform/settings/secrets/{segment(name)}"
        return await self._sender.call(SecretStatus, send("PUT", path, {"value": value}, is_repeatable=True))

    async def put_configuration(self, name: str, value: str | float | bool | None) -> Setting:
        """Override a setting; None removes the override."""
        path = f"/v1/platform/settings/configuration/{segment(name)}"
        return await self._sender.call(Setting, send("PUT", path, {"value": value}, is_repeatable=True))


class AsyncGroups(_AsyncGroup):
    """Every group, by name."""

    def __init__(self, sender: AsyncSender) -> None:
        super().__init__(sender)
        self.organizations = AsyncOrganizations(sender)
        self.projects = AsyncProjects(sender)
        self.api_keys = AsyncApiKeys(sender)
        self.members = AsyncMembers(sender)
        self.invitations = AsyncInvitations(sender)
        self.audit_log = AsyncAuditLog(sender)
        self.codes = AsyncCodes(sender)
        self.campaigns = AsyncCampaigns(sender)
        self.integrations = AsyncIntegrations(sender)
        self.audience = AsyncAudience(sender)
        self.platform = AsyncPlatform(sender)

    async def caller(self) -> Caller:
        """Return who the credential in use stands for; of a server key, the organisation and project it belongs to."""
        return await self._sender.call(Caller, get("/v1/caller"))

    async def usage(self, *, organization_id: str | None = None) -> Usage:
        """Return what an organisation used this month, and its quota."""
        return await self._sender.call(Usage, get("/v1/usage", **await self._sender.in_organization(organization_id)))
