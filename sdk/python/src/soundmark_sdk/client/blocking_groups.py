"""The operations of the service, grouped by what they are about, for blocking code.

Made from `async_groups`.
Every method raises ClientFailure (`ApiProblem` where the service refused) and, for what cannot be asked, ValueError.
Ids are those that the service gave; times carry a zone. Lists are newest first: `list` yields every record and fetches
pages of `page_size` as it goes, `page` returns one of them.

`organization_id` and `project_id` may be left out: then they are those that the client was made with, or those of the
server key in use. Where neither says them, TenantNotGiven (a ValueError) is raised.
"""

from collections.abc import Collection, Iterator
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
from soundmark_sdk.client.sender import BlockingSender
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


class _Group:
    def __init__(self, sender: BlockingSender) -> None:
        self._sender = sender


class Organizations(_Group):
    """Organisations, as their members see them. Server keys have no part in these."""

    def create(self, name: str) -> Organization:
        """Create an organisation that the caller owns."""
        return self._sender.call(Organization, send("POST", "/v1/organizations", {"name": name}))

    def rename(self, name: str, *, organization_id: str | None = None) -> Organization:
        """Give an organisation another name."""
        tenant = self._sender.in_organization(organization_id)
        path = f"/v1/organizations/{segment(tenant['organization_id'])}"
        return self._sender.call(Organization, send("PATCH", path, {"name": name}, is_repeatable=True))

    def page(self, *, limit: int = PAGE_SIZE_MAX, cursor: str | None = None) -> Page[Organization]:
        """Return one page of the organisations that the caller belongs to."""
        return self._sender.page(Organization, get("/v1/organizations", limit=limit, cursor=cursor))

    def list(self, *, page_size: int = PAGE_SIZE_MAX) -> Iterator[Organization]:
        """Yield every organisation that the caller belongs to."""
        return self._sender.each(Organization, get("/v1/organizations", limit=page_size))


class Projects(_Group):
    """The projects of an organisation."""

    def create(self, name: str, *, organization_id: str | None = None) -> Project:
        """Create a project."""
        document = {**self._sender.in_organization(organization_id), "name": name}
        return self._sender.call(Project, send("POST", "/v1/projects", document))

    def rename(self, name: str, *, organization_id: str | None = None, project_id: str | None = None) -> Project:
        """Give a project another name."""
        tenant = self._sender.in_project(organization_id, project_id)
        path = f"/v1/projects/{segment(tenant['project_id'])}"
        organization = tenant["organization_id"]
        call = send("PATCH", path, {"name": name}, is_repeatable=True, organization_id=organization)
        return self._sender.call(Project, call)

    def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Project]:
        """Return one page of an organisation's projects."""
        tenant = self._sender.in_organization(organization_id)
        call = get("/v1/projects", **tenant, limit=limit, cursor=cursor)
        return self._sender.page(Project, call)

    def list(self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX) -> Iterator[Project]:
        """Yield every project of an organisation."""
        tenant = self._sender.in_organization(organization_id)
        yield from self._sender.each(Project, get("/v1/projects", **tenant, limit=page_size))


class ApiKeys(_Group):
    """Server keys, each of one project."""

    def create(
        self,
        scopes: Collection[KeyScope],
        *,
        expires_in_days: int | None = None,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> ApiKeyWithSecret:
        """Create a key; its secret is in this answer and nowhere else. It lives 90 days unless told, at most 365."""
        tenant = self._sender.in_project(organization_id, project_id)
        document: dict[str, Any] = {**tenant, "scopes": sorted(scopes)}
        if expires_in_days is not None:
            document["expires_in_days"] = expires_in_days
        return self._sender.call(ApiKeyWithSecret, send("POST", "/v1/api-keys", document))

    def revoke(self, api_key_id: str, *, organization_id: str | None = None) -> ApiKey:
        """Revoke a key; one that is revoked or expired is answered unchanged."""
        path = f"/v1/api-keys/{segment(api_key_id)}/revoke"
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(ApiKey, send("POST", path, is_repeatable=True, **tenant))

    def rotate_secret(self, api_key_id: str, *, organization_id: str | None = None) -> ApiKeyWithSecret:
        """Give an active key another secret, which is in this answer and nowhere else; the old one is void at once."""
        path = f"/v1/api-keys/{segment(api_key_id)}/secret"
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(ApiKeyWithSecret, send("POST", path, is_repeatable=False, **tenant))

    def page(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[ApiKey]:
        """Return one page of an organisation's keys; with a project, of that one's."""
        tenant = self._sender.in_organization(organization_id)
        call = get("/v1/api-keys", **tenant, project_id=project_id, limit=limit, cursor=cursor)
        return self._sender.page(ApiKey, call)

    def list(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[ApiKey]:
        """Yield every key of an organisation; with a project, of that one."""
        tenant = self._sender.in_organization(organization_id)
        call = get("/v1/api-keys", **tenant, project_id=project_id, limit=page_size)
        yield from self._sender.each(ApiKey, call)


class Members(_Group):
    """The members of an organisation. Server keys have no part in these."""

    def change_role(self, subject_id: str, role: Role, *, organization_id: str | None = None) -> Member:
        """Give a member a role. Only an owner makes, changes or unmakes owners and administrators."""
        path = f"/v1/members/{segment(subject_id)}"
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(Member, send("PUT", path, {"role": role}, is_repeatable=True, **tenant))

    def remove(self, subject_id: str, *, organization_id: str | None = None) -> None:
        """Remove a member; everybody may leave, but the last owner."""
        path = f"/v1/members/{segment(subject_id)}"
        tenant = self._sender.in_organization(organization_id)
        self._sender.order(send("DELETE", path, is_repeatable=False, **tenant))

    def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Member]:
        """Return one page of an organisation's members."""
        tenant = self._sender.in_organization(organization_id)
        call = get("/v1/members", **tenant, limit=limit, cursor=cursor)
        return self._sender.page(Member, call)

    def list(self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX) -> Iterator[Member]:
        """Yield every member of an organisation."""
        tenant = self._sender.in_organization(organization_id)
        yield from self._sender.each(Member, get("/v1/members", **tenant, limit=page_size))


class Invitations(_Group):
    """Invitations into an organisation. Server keys have no part in these."""

    def create(
        self,
        email: str,
        role: Literal["member", "billing", "admin"],
        *,
        expires_in_days: int | None = None,
        organization_id: str | None = None,
    ) -> InvitationWithSecret:
        """Invite a person; the secret is in this answer and, where mail is set up, in the letter."""
        tenant = self._sender.in_organization(organization_id)
        document: dict[str, Any] = {**tenant, "email": email, "role": role}
        if expires_in_days is not None:
            document["expires_in_days"] = expires_in_days
        return self._sender.call(InvitationWithSecret, send("POST", "/v1/member-invitations", document))

    def accept(self, token: str) -> Joined:
        """Join an organisation by an invitation for the caller's verified e-mail address."""
        return self._sender.call(Joined, send("POST", "/v1/member-invitations/accept", {"token": token}))

    def revoke(self, invitation_id: str, *, organization_id: str | None = None) -> Invitation:
        """Revoke a pending invitation."""
        path = f"/v1/member-invitations/{segment(invitation_id)}/revoke"
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(Invitation, send("POST", path, is_repeatable=False, **tenant))

    def page(
        self, *, organization_id: str | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Invitation]:
        """Return one page of an organisation's invitations, whatever became of them."""
        tenant = self._sender.in_organization(organization_id)
        call = get("/v1/member-invitations", **tenant, limit=limit, cursor=cursor)
        return self._sender.page(Invitation, call)

    def list(self, *, organization_id: str | None = None, page_size: int = PAGE_SIZE_MAX) -> Iterator[Invitation]:
        """Yield every invitation of an organisation, whatever became of it."""
        tenant = self._sender.in_organization(organization_id)
        yield from self._sender.each(Invitation, get("/v1/member-invitations", **tenant, limit=page_size))


class AuditLog(_Group):
    """What was done in an organisation."""

    def page(
        self,
        filters: AuditFilters | None = None,
        *,
        organization_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[AuditEntry]:
        """Return one page of the entries that the filters leave."""
        query = (filters or AuditFilters()).query()
        tenant = self._sender.in_organization(organization_id)
        call = get("/v1/audit-log", **tenant, **query, limit=limit, cursor=cursor)
        return self._sender.page(AuditEntry, call)

    def list(
        self,
        filters: AuditFilters | None = None,
        *,
        organization_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[AuditEntry]:
        """Yield every entry that the filters leave."""
        query = (filters or AuditFilters()).query()
        tenant = self._sender.in_organization(organization_id)
        yield from self._sender.each(AuditEntry, get("/v1/audit-log", **tenant, **query, limit=page_size))

    def download(
        self,
        into: BinaryIO,
        filters: AuditFilters | None = None,
        *,
        organization_id: str | None = None,
        form: Literal["ndjson", "csv"] = "ndjson",
        on_progress: Progress | None = None,
    ) -> int:
        """Write every entry that the filters leave into a file, complete, and return its size in bytes."""
        query = {**self._sender.in_organization(organization_id), **(filters or AuditFilters()).query()}
        accept = {"ndjson": "application/x-ndjson", "csv": "text/csv"}[form]
        call = Call("GET", "/v1/audit-log", query, is_repeatable=True, accept=accept)
        return self._sender.download(call, into, on_progress)

    def verify(self, *, organization_id: str | None = None) -> AuditVerification:
        """Have the chain recomputed that the entries are sealed into."""
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(AuditVerification, get("/v1/audit-log/verification", **tenant))


class Codes(_Group):
    """Codes. Issuing takes place exactly once for each call, whatever becomes of the connection.

    Each issuance has an idempotency key, remembered with the exact body until its answer is there. When an answer is
    lost, the service is asked what became of it, and the request is repeated under the same key only where it never
    took place. What cannot be settled in time raises a failure with `unsettled`: make the same call again, or hand
    that to `resume`, within 23 hours.
    """

    def issue(self, wish: Wish, *, idempotency_key: str | None = None) -> Code:
        """Issue one Code. With a key of your own, a repeat of the same call answers the same Code for 24 hours."""
        body = write_body(self._document(wish))
        return self._sender.issue(Code, body, is_batch=False, idempotency_key=idempotency_key)

    def issue_batch(self, wish: Wish, count: int, *, idempotency_key: str | None = None) -> CodeBatch:
        """Issue 1 to 100 Codes that differ in their ids and tokens only: all of them, or none."""
        body = write_body({**self._document(wish), "count": count})
        return self._sender.issue(CodeBatch, body, is_batch=True, idempotency_key=idempotency_key)

    def dry_run(self, wish: Wish) -> DryRun:
        """Return what `issue` would come to now, without any effect."""
        call = send("POST", "/v1/codes", self._document(wish), is_repeatable=True, dry_run="true")
        return self._sender.call(DryRun, call)

    def dry_run_batch(self, wish: Wish, count: int) -> DryRun:
        """Return what `issue_batch` would come to now, without any effect."""
        document = {**self._document(wish), "count": count}
        call = send("POST", "/v1/codes/batch", document, is_repeatable=True, dry_run="true")
        return self._sender.call(DryRun, call)

    def unsettled(self) -> tuple[RememberedIssuance, ...]:
        """Return the issuances that were left without an answer, oldest first, none older than 23 hours."""
        return self._sender.unsettled()

    def resume(self, issuance: RememberedIssuance) -> tuple[Code, ...]:
        """Finish an issuance that was left without an answer, and return its Codes.

        It is recovered where it took place, and takes place now where it did not. ValueError for one of 23 hours.
        """
        if issuance.is_batch:
            return (self._sender.resume(CodeBatch, issuance)).data
        return (self._sender.resume(Code, issuance),)

    def recover(self, issuance: RememberedIssuance) -> tuple[Code, ...]:
        """Return the Codes of an issuance that took place, without issuing; `code_issue_not_found` where it did not."""
        if issuance.is_batch:
            return (self._sender.recover(CodeBatch, issuance)).data
        return (self._sender.recover(Code, issuance),)

    def forget(self, issuance: RememberedIssuance) -> None:
        """Remember an issuance no more, whatever became of it."""
        self._sender.forget(issuance)

    def page(
        self,
        filters: CodeFilters | None = None,
        *,
        organization_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[ListedCode]:
        """Return one page of the Codes that the filters leave."""
        query = (filters or CodeFilters()).query()
        tenant = self._sender.in_organization(organization_id)
        call = get("/v1/codes", **tenant, **query, limit=limit, cursor=cursor)
        return self._sender.page(ListedCode, call)

    def list(
        self,
        filters: CodeFilters | None = None,
        *,
        organization_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[ListedCode]:
        """Yield every Code that the filters leave."""
        query = (filters or CodeFilters()).query()
        tenant = self._sender.in_organization(organization_id)
        yield from self._sender.each(ListedCode, get("/v1/codes", **tenant, **query, limit=page_size))

    def show(self, xr_id: str, *, organization_id: str | None = None, project_id: str | None = None) -> Code:
        """Return one Code, in whatever state; with a project, only a Code of that one."""
        path = f"/v1/codes/{segment(xr_id)}"
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(Code, get(path, **tenant, project_id=project_id))

    def revoke(self, xr_id: str, *, organization_id: str | None = None) -> Code:
        """Revoke one Code; one that is revoked or expired is answered unchanged."""
        path = f"/v1/codes/{segment(xr_id)}/revoke"
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(Code, send("POST", path, is_repeatable=True, **tenant))

    def revoke_batch(
        self, xr_ids: Collection[str], *, organization_id: str | None = None, project_id: str | None = None
    ) -> RevokedBatch:
        """Revoke 1 to 100 Codes of one project, all of them or, where one is not there, none.

        After a lost answer it is asked for again, and what the first time revoked then counts as unchanged.
        """
        tenant = self._sender.in_project(organization_id, project_id)
        document = {"project_id": tenant["project_id"], "xr_ids": [*xr_ids]}
        organization = tenant["organization_id"]
        call = send("POST", "/v1/codes/revoke-batch", document, is_repeatable=True, organization_id=organization)
        return self._sender.call(RevokedBatch, call)

    def wav(
        self, xr_id: str, into: BinaryIO, *, protocol: Literal[3, 4, 5] = 4, organization_id: str | None = None
    ) -> int:
        """Write the sound of an active Code into a file, and return its size in bytes."""
        call = Call(
            "GET",
            f"/v1/codes/{segment(xr_id)}/audio",
            {**self._sender.in_organization(organization_id), "protocol": protocol},
            is_repeatable=True,
            accept="audio/wav",
        )
        return self._sender.download(call, into, None)

    def audio_bundle(  # noqa: PLR0913 - what is bundled, where to, and two options by name
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
            self._sender.in_project(organization_id, project_id),
            write_body({"xr_ids": [*xr_ids], "protocol": protocol}),
            is_repeatable=True,
            accept="application/zip",
        )
        return self._sender.download(call, into, on_progress)

    def _document(self, wish: Wish) -> dict[str, Any]:
        document = wish.document()  # First: what can never be issued is no reason to ask about the key.
        return {**self._sender.in_project(wish.organization_id, wish.project_id), **document}


class Campaigns(_Group):
    """The campaigns of a project."""

    def create(
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
            **self._sender.in_project(organization_id, project_id),
            "name": name,
            **{date: text for date, text in dates.items() if text is not None},
        }
        return self._sender.call(Campaign, send("POST", "/v1/campaigns", document))

    def update(
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
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(Campaign, send("PATCH", path, document, is_repeatable=True, **tenant))

    def archive(self, campaign_id: str, *, organization_id: str | None = None) -> Campaign:
        """Let nothing be issued under a campaign any more; its Codes stay as they are. Again changes nothing."""
        path = f"/v1/campaigns/{segment(campaign_id)}/archive"
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(Campaign, send("POST", path, is_repeatable=True, **tenant))

    def stop(self, campaign_id: str, *, organization_id: str | None = None) -> StoppedCampaign:
        """Archive a campaign and revoke every active Code of it, at once.

        After a lost answer it is asked for again, and then counts only what was left.
        """
        path = f"/v1/campaigns/{segment(campaign_id)}/stop"
        tenant = self._sender.in_organization(organization_id)
        return self._sender.call(StoppedCampaign, send("POST", path, is_repeatable=True, **tenant))

    def summary(self, campaign_id: str, *, organization_id: str | None = None) -> CampaignSummary:
        """Return a campaign and its Codes, counted at one moment."""
        path = f"/v1/campaigns/{segment(campaign_id)}/summary"
        return self._sender.call(CampaignSummary, get(path, **self._sender.in_organization(organization_id)))

    def page(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[Campaign]:
        """Return one page of a project's campaigns."""
        tenant = self._sender.in_project(organization_id, project_id)
        return self._sender.page(Campaign, get("/v1/campaigns", **tenant, limit=limit, cursor=cursor))

    def list(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[Campaign]:
        """Yield every campaign of a project."""
        tenant = self._sender.in_project(organization_id, project_id)
        yield from self._sender.each(Campaign, get("/v1/campaigns", **tenant, limit=page_size))


class Integrations(_Group):
    """Audience integrations of a project. A server key needs `audience:write`, and to list them `audience:read`."""

    def create(
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
        tenant = self._sender.in_project(organization_id, project_id)
        document = {**tenant, "mode": mode, "retention_days": retention_days}
        return self._sender.call(IntegrationWithSecret, send("POST", "/v1/audience/integrations", document))

    def revoke(
        self, integration_id: str, *, organization_id: str | None = None, project_id: str | None = None
    ) -> Integration:
        """Let nothing be measured by an integration any more; what was stays reportable. Again changes nothing."""
        path = f"/v1/audience/integrations/{segment(integration_id)}/revoke"
        tenant = self._sender.in_project(organization_id, project_id)
        return self._sender.call(Integration, send("POST", path, is_repeatable=True, **tenant))

    def rotate_secret(
        self, integration_id: str, *, organization_id: str | None = None, project_id: str | None = None
    ) -> IntegrationWithSecret:
        """Give an active integration another HMAC secret, which is in this answer only; the old one is void at once."""
        path = f"/v1/audience/integrations/{segment(integration_id)}/secret"
        tenant = self._sender.in_project(organization_id, project_id)
        return self._sender.call(IntegrationWithSecret, send("POST", path, is_repeatable=False, **tenant))

    def change_retention(
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
        tenant = self._sender.in_project(organization_id, project_id)
        call = send("PATCH", path, {"retention_days": retention_days}, is_repeatable=True, **tenant)
        return self._sender.call(ChangedRetention, call)

    def replace_core_key(
        self, integration_id: str, *, organization_id: str | None = None, project_id: str | None = None
    ) -> ReplacedCoreKey:
        """Have an integration trust the key that Core signs with now; a rotation does so by itself."""
        path = f"/v1/audience/integrations/{segment(integration_id)}/core-key"
        tenant = self._sender.in_project(organization_id, project_id)
        return self._sender.call(ReplacedCoreKey, send("POST", path, is_repeatable=True, **tenant))

    def page(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[Integration]:
        """Return one page of a project's integrations, revoked ones too."""
        tenant = self._sender.in_project(organization_id, project_id)
        call = get("/v1/audience/integrations", **tenant, limit=limit, cursor=cursor)
        return self._sender.page(Integration, call)

    def list(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[Integration]:
        """Yield every integration of a project, revoked ones too."""
        tenant = self._sender.in_project(organization_id, project_id)
        call = get("/v1/audience/integrations", **tenant, limit=page_size)
        yield from self._sender.each(Integration, call)


class Audience(_Group):
    """What integrations measured. A server key needs the scope `audience:read`."""

    def report(
        self,
        integration_id: str,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> AudienceReport:
        """Return what an integration measured, as of one moment; of a revoked one too, within its retention."""
        path = f"/v1/audience/reports/{segment(integration_id)}"
        query = {**self._sender.in_project(organization_id, project_id), **filters.query()}
        return self._sender.call(AudienceReport, get(path, **query))

    def legacy_report(
        self,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> LegacyReport:
        """Return the daily aggregates of the time before XR v1; of the filters, only the period counts."""
        query = {**self._sender.in_project(organization_id, project_id), **filters.period()}
        return self._sender.call(LegacyReport, get("/v1/audience/legacy-report", **query))

    def download_report(
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
        query = {**self._sender.in_project(organization_id, project_id), **filters.query()}
        call = Call("GET", path, query, is_repeatable=True, accept="text/csv")
        return self._sender.download(call, into, None)

    def download_legacy_report(
        self,
        into: BinaryIO,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> int:
        """Write the legacy report as CSV into a file, a line for each number, and return its size in bytes."""
        query = {**self._sender.in_project(organization_id, project_id), **filters.period()}
        call = Call("GET", "/v1/audience/legacy-report", query, is_repeatable=True, accept="text/csv")
        return self._sender.download(call, into, None)


class Platform(_Group):
    """Platform settings, for administrators of the platform."""

    def settings(self) -> PlatformSettings:
        """Return what is configured and where it comes from; of credentials only whether they are there."""
        return self._sender.call(PlatformSettings, get("/v1/platform/settings"))

    def put_secret(self, name: str, value: str) -> SecretStatus:
        """Put a credential in the place of the one before."""
        path = f"/v1/platform/settings/secrets/{segment(name)}"
        return self._sender.call(SecretStatus, send("PUT", path, {"value": value}, is_repeatable=True))

    def put_configuration(self, name: str, value: str | float | bool | None) -> Setting:
        """Override a setting; None removes the override."""
        path = f"/v1/platform/settings/configuration/{segment(name)}"
        return self._sender.call(Setting, send("PUT", path, {"value": value}, is_repeatable=True))


class Groups(_Group):
    """Every group, by name."""

    def __init__(self, sender: BlockingSender) -> None:
        super().__init__(sender)
        self.organizations = Organizations(sender)
        self.projects = Projects(sender)
        self.api_keys = ApiKeys(sender)
        self.members = Members(sender)
        self.invitations = Invitations(sender)
        self.audit_log = AuditLog(sender)
        self.codes = Codes(sender)
        self.campaigns = Campaigns(sender)
        self.integrations = Integrations(sender)
        self.audience = Audience(sender)
        self.platform = Platform(sender)

    def caller(self) -> Caller:
        """Return who the credential in use stands for; of a server key, the organisation and project it belongs to."""
        return self._sender.call(Caller, get("/v1/caller"))

    def usage(self, *, organization_id: str | None = None) -> Usage:
        """Return what an organisation used this month, and its quota."""
        return self._sender.call(Usage, get("/v1/usage", **self._sender.in_organization(organization_id)))
