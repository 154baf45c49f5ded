# Generated from `../_async/codes.py` by `make_blocking.py`: change that file, then run this program.
"""Codes and campaigns."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Any, Literal

from soundmark_sdk.client._sync.group import Group
from soundmark_sdk.client.api_connection import Progress
from soundmark_sdk.client.calls import PAGE_SIZE_MAX, Call, make_call, make_get, quote_id, write_body
from soundmark_sdk.client.dispatcher import SaveTarget
from soundmark_sdk.client.records import (
    Campaign,
    CampaignSummary,
    Code,
    CodeBatch,
    DecodeCertificate,
    DryRun,
    ListedCode,
    Page,
    RevokedBatch,
    StoppedCampaign,
)
from soundmark_sdk.client.recovery import RememberedIssuance
from soundmark_sdk.client.requests import UNCHANGED, CodeFilters, CodeOrder, IssueRequest, Unchanged, write_value


class Codes(Group):
    """Codes. Each call issues exactly once, even over a connection that breaks.

    The client stores each issuance, with an idempotency key and its exact body, until the answer arrives. If the answer
    is lost, the client asks the service for it, and repeats the request under the same key only if the issuance never
    took place. If this takes too long, the failure has `unsettled`: make the same call again, or pass that to `resume`,
    within 23 hours.
    """

    def issue(self, request: IssueRequest, *, idempotency_key: str | None = None) -> Code:
        """Issue one Code. With your own idempotency key, the same call returns the same Code for 24 hours."""
        body = write_body(self._make_document(request))
        return self._sender.issue(Code, body, is_batch=False, idempotency_key=idempotency_key)

    def issue_batch(self, request: IssueRequest, count: int, *, idempotency_key: str | None = None) -> CodeBatch:
        """Issue 1 to 100 Codes, all of them or none. They differ only in their ids and tokens."""
        body = write_body({**self._make_document(request), "count": count})
        return self._sender.issue(CodeBatch, body, is_batch=True, idempotency_key=idempotency_key)

    def dry_run(self, request: IssueRequest) -> DryRun:
        """Return whether `issue` would succeed now, without any effect."""
        call = make_call("POST", "/v1/codes", self._make_document(request), is_repeatable=True, dry_run="true")
        return self._sender.call(DryRun, call)

    def dry_run_batch(self, request: IssueRequest, count: int) -> DryRun:
        """Return whether `issue_batch` would succeed now, without any effect."""
        document = {**self._make_document(request), "count": count}
        call = make_call("POST", "/v1/codes/batch", document, is_repeatable=True, dry_run="true")
        return self._sender.call(DryRun, call)

    def list_unsettled(self) -> tuple[RememberedIssuance, ...]:
        """Return the issuances without a response, oldest first, none older than 23 hours."""
        return self._sender.list_unsettled()

    def resume(self, issuance: RememberedIssuance) -> tuple[Code, ...]:
        """Finish an issuance without a response, and return its Codes.

        If it took place, its response is recovered; if not, it takes place now.

        Raises: ValueError for an issuance that is 23 hours old.
        """
        if issuance.is_batch:
            return (self._sender.resume(CodeBatch, issuance)).data
        return (self._sender.resume(Code, issuance),)

    def recover(self, issuance: RememberedIssuance) -> tuple[Code, ...]:
        """Return the Codes of an issuance, without issuing; `code_issue_not_found` if it did not take place."""
        if issuance.is_batch:
            return (self._sender.recover(CodeBatch, issuance)).data
        return (self._sender.recover(Code, issuance),)

    def forget(self, issuance: RememberedIssuance) -> None:
        """Delete an issuance from the recovery store, regardless of its result."""
        self._sender.forget(issuance)

    def page(
        self,
        filters: CodeFilters | None = None,
        *,
        order: CodeOrder | None = None,
        include_intent: bool = False,
        organization_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[ListedCode]:
        """Return one page of the Codes that match the filters, newest first unless `order` is given.

        A page can be shorter than `limit`, or empty: the list ends only when `next_cursor` is None.
        """
        query = _make_list_query(filters, order, include_intent=include_intent)
        tenant = self._sender.choose_organization(organization_id)
        call = make_get("/v1/codes", **tenant, **query, limit=limit, cursor=cursor)
        return self._sender.get_page(ListedCode, call)

    def list(
        self,
        filters: CodeFilters | None = None,
        *,
        order: CodeOrder | None = None,
        include_intent: bool = False,
        organization_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[ListedCode]:
        """Yield every Code that matches the filters, newest first unless `order` is given."""
        query = _make_list_query(filters, order, include_intent=include_intent)
        tenant = self._sender.choose_organization(organization_id)
        yield from self._sender.iterate(ListedCode, make_get("/v1/codes", **tenant, **query, limit=page_size))

    def show(self, xr_id: str, *, organization_id: str | None = None, project_id: str | None = None) -> Code:
        """Return one Code in any state, or only if it belongs to one project."""
        path = f"/v1/codes/{quote_id(xr_id)}"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(Code, make_get(path, **tenant, project_id=project_id))

    def revoke(self, xr_id: str, *, organization_id: str | None = None) -> Code:
        """Revoke one Code; a Code that was revoked or has expired does not change."""
        path = f"/v1/codes/{quote_id(xr_id)}/revoke"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(Code, make_call("POST", path, is_repeatable=True, **tenant))

    def revoke_batch(
        self, xr_ids: Collection[str], *, organization_id: str | None = None, project_id: str | None = None
    ) -> RevokedBatch:
        """Revoke 1 to 100 Codes of one project: all of them, or none if one does not exist.

        If the response is lost, the call is repeated; the Codes that the first request revoked then count as unchanged.
        """
        tenant = self._sender.choose_project(organization_id, project_id)
        document = {"project_id": tenant["project_id"], "xr_ids": [*xr_ids]}
        organization = tenant["organization_id"]
        call = make_call("POST", "/v1/codes/revoke-batch", document, is_repeatable=True, organization_id=organization)
        return self._sender.call(RevokedBatch, call)

    def wav(
        self, xr_id: str, into: SaveTarget, *, protocol: Literal[3, 4, 5] = 4, organization_id: str | None = None
    ) -> int:
        """Write the sound of an active Code into a file, and return its size in bytes."""
        call = Call(
            "GET",
            f"/v1/codes/{quote_id(xr_id)}/audio",
            {**self._sender.choose_organization(organization_id), "protocol": protocol},
            is_repeatable=True,
            accept="audio/wav",
        )
        return self._sender.save(call, into, None)

    def audio_bundle(
        self,
        xr_ids: Collection[str],
        into: SaveTarget,
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
            self._sender.choose_project(organization_id, project_id),
            write_body({"xr_ids": [*xr_ids], "protocol": protocol}),
            is_repeatable=True,
            accept="application/zip",
        )
        return self._sender.save(call, into, on_progress)

    def certify(
        self, xr_id: str, measured: Mapping[str, Any], *, organization_id: str | None = None
    ) -> DecodeCertificate:
        """Have the service sign what you measured of a Code in a finished programme.

        `measured` has the members of `decode-certificate-v1` of that name, all of them. Not repeated by itself: each
        call issues a certificate of its own.
        """
        path = f"/v1/codes/{quote_id(xr_id)}/decode-certificates"
        tenant = self._sender.choose_organization(organization_id)
        call = make_call("POST", path, dict(measured), is_repeatable=False, **tenant)
        return self._sender.call(DecodeCertificate, call)

    def make_offline_pack(
        self,
        into: SaveTarget,
        *,
        valid_for_s: int,
        campaign_id: str | None = None,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> int:
        """Write a signed pack of the active Codes of a campaign, or of the project, into a file; return its size.

        Receivers that cannot reach the service answer from it, for 300 to 86,400 seconds. Not repeated by itself: each
        call makes a pack of its own.
        """
        tenant = self._sender.choose_project(organization_id, project_id)
        document = {"campaign_id": campaign_id, "valid_for_s": valid_for_s}
        call = make_call("POST", "/v1/offline-packs", document, is_repeatable=False, **tenant)
        return self._sender.save(call, into, None)

    def _make_document(self, request: IssueRequest) -> dict[str, Any]:
        # First, because an impossible request is no reason to ask the service about the key.
        document = request.make_document()
        return {**self._sender.choose_project(request.organization_id, request.project_id), **document}


class Campaigns(Group):
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
        dates = {"starts_at": write_value(starts_at), "ends_at": write_value(ends_at)}
        document = {
            **self._sender.choose_project(organization_id, project_id),
            "name": name,
            **{date: text for date, text in dates.items() if text is not None},
        }
        return self._sender.call(Campaign, make_call("POST", "/v1/campaigns", document))

    def update(
        self,
        campaign_id: str,
        *,
        name: str | Unchanged = UNCHANGED,
        starts_at: datetime | Unchanged | None = UNCHANGED,
        ends_at: datetime | Unchanged | None = UNCHANGED,
        organization_id: str | None = None,
    ) -> Campaign:
        """Change the name or the dates of a campaign; None removes a date. Codes that exist do not change."""
        changes = {"name": name, "starts_at": starts_at, "ends_at": ends_at}
        document = {member: write_value(value) for member, value in changes.items() if not isinstance(value, Unchanged)}
        path = f"/v1/campaigns/{quote_id(campaign_id)}"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(Campaign, make_call("PATCH", path, document, is_repeatable=True, **tenant))

    def archive(self, campaign_id: str, *, organization_id: str | None = None) -> Campaign:
        """End issuing for a campaign; its Codes do not change. Archiving it again changes nothing."""
        path = f"/v1/campaigns/{quote_id(campaign_id)}/archive"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(Campaign, make_call("POST", path, is_repeatable=True, **tenant))

    def stop(self, campaign_id: str, *, organization_id: str | None = None) -> StoppedCampaign:
        """Archive a campaign and revoke all of its active Codes together.

        If the response is lost, the call is repeated; its count then omits the Codes that the first request revoked.
        """
        path = f"/v1/campaigns/{quote_id(campaign_id)}/stop"
        tenant = self._sender.choose_organization(organization_id)
        return self._sender.call(StoppedCampaign, make_call("POST", path, is_repeatable=True, **tenant))

    def summary(self, campaign_id: str, *, organization_id: str | None = None) -> CampaignSummary:
        """Return a campaign and the counts of its Codes, as of one point in time."""
        path = f"/v1/campaigns/{quote_id(campaign_id)}/summary"
        return self._sender.call(CampaignSummary, make_get(path, **self._sender.choose_organization(organization_id)))

    def page(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[Campaign]:
        """Return one page of a project's campaigns."""
        tenant = self._sender.choose_project(organization_id, project_id)
        return self._sender.get_page(Campaign, make_get("/v1/campaigns", **tenant, limit=limit, cursor=cursor))

    def list(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[Campaign]:
        """Yield every campaign of a project."""
        tenant = self._sender.choose_project(organization_id, project_id)
        yield from self._sender.iterate(Campaign, make_get("/v1/campaigns", **tenant, limit=page_size))


def _make_list_query(
    filters: CodeFilters | None, order: CodeOrder | None, *, include_intent: bool
) -> dict[str, str | None]:
    query = (filters or CodeFilters()).make_query()
    if order is not None:
        query |= order.make_query()
    if include_intent:
        query["include"] = "intent"
    return query
