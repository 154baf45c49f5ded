# Generated from `../_async/audience.py` by `make_blocking.py`: change that file, then run this program.
"""Audience integrations and their reports."""

from collections.abc import Iterator
from typing import Any

from soundmark_sdk.client._sync.group import Group
from soundmark_sdk.client.calls import PAGE_SIZE_MAX, Call, make_call, make_get, quote_id
from soundmark_sdk.client.dispatcher import SaveTarget
from soundmark_sdk.client.records import (
    AudienceMode,
    AudienceReport,
    ChangedRetention,
    Integration,
    IntegrationWithSecret,
    LegacyReport,
    Page,
    ReplacedCoreKey,
)
from soundmark_sdk.client.requests import EVERYTHING, ReportFilters


class Integrations(Group):
    """The Audience integrations of a project. API keys need `audience:write`, for lists `audience:read`."""

    def create(
        self,
        mode: AudienceMode,
        *,
        retention_days: int,
        name: str | None = None,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> IntegrationWithSecret:
        """Create an integration. Only this response contains its HMAC secret.

        If the response is lost, so is the secret: find the integration with `list`, then revoke it or use
        `rotate_secret`.
        """
        tenant = self._sender.choose_project(organization_id, project_id)
        document: dict[str, Any] = {**tenant, "mode": mode, "retention_days": retention_days}
        if name is not None:
            document["name"] = name
        return self._sender.call(IntegrationWithSecret, make_call("POST", "/v1/audience/integrations", document))

    def rename(
        self,
        integration_id: str,
        name: str | None,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> Integration:
        """Rename an integration, regardless of its status; None removes the name."""
        path = f"/v1/audience/integrations/{quote_id(integration_id)}"
        tenant = self._sender.choose_project(organization_id, project_id)
        call = make_call("PATCH", path, {"name": name}, is_repeatable=True, **tenant)
        return self._sender.call(Integration, call)

    def revoke(
        self, integration_id: str, *, organization_id: str | None = None, project_id: str | None = None
    ) -> Integration:
        """End measuring for an integration; its reports stay available. Revoking it again changes nothing."""
        path = f"/v1/audience/integrations/{quote_id(integration_id)}/revoke"
        tenant = self._sender.choose_project(organization_id, project_id)
        return self._sender.call(Integration, make_call("POST", path, is_repeatable=True, **tenant))

    def rotate_secret(
        self, integration_id: str, *, organization_id: str | None = None, project_id: str | None = None
    ) -> IntegrationWithSecret:
        """Rotate the HMAC secret of an active integration. Only this response contains it; the old one stops."""
        path = f"/v1/audience/integrations/{quote_id(integration_id)}/secret"
        tenant = self._sender.choose_project(organization_id, project_id)
        return self._sender.call(IntegrationWithSecret, make_call("POST", path, is_repeatable=False, **tenant))

    def change_retention(
        self,
        integration_id: str,
        retention_days: int,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> ChangedRetention:
        """Change how many days an integration keeps its events. Older events are deleted immediately.

        If the response is lost, the call is repeated; its count then omits the events that the first request deleted.
        """
        path = f"/v1/audience/integrations/{quote_id(integration_id)}/retention"
        tenant = self._sender.choose_project(organization_id, project_id)
        call = make_call("PATCH", path, {"retention_days": retention_days}, is_repeatable=True, **tenant)
        return self._sender.call(ChangedRetention, call)

    def replace_core_key(
        self, integration_id: str, *, organization_id: str | None = None, project_id: str | None = None
    ) -> ReplacedCoreKey:
        """Make an integration trust Core's current signing key. A key rotation does this automatically."""
        path = f"/v1/audience/integrations/{quote_id(integration_id)}/core-key"
        tenant = self._sender.choose_project(organization_id, project_id)
        return self._sender.call(ReplacedCoreKey, make_call("POST", path, is_repeatable=True, **tenant))

    def page(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[Integration]:
        """Return one page of a project's integrations, including revoked ones."""
        tenant = self._sender.choose_project(organization_id, project_id)
        call = make_get("/v1/audience/integrations", **tenant, limit=limit, cursor=cursor)
        return self._sender.get_page(Integration, call)

    def list(
        self,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
        page_size: int = PAGE_SIZE_MAX,
    ) -> Iterator[Integration]:
        """Yield every integration of a project, including revoked ones."""
        tenant = self._sender.choose_project(organization_id, project_id)
        call = make_get("/v1/audience/integrations", **tenant, limit=page_size)
        yield from self._sender.iterate(Integration, call)


class Audience(Group):
    """The reports of integrations. An API key needs the scope `audience:read`."""

    def report(
        self,
        integration_id: str,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> AudienceReport:
        """Return the report of an integration, as of one point in time, including a revoked integration."""
        path = f"/v1/audience/reports/{quote_id(integration_id)}"
        query = {**self._sender.choose_project(organization_id, project_id), **filters.make_query()}
        return self._sender.call(AudienceReport, make_get(path, **query))

    def legacy_report(
        self,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> LegacyReport:
        """Return the daily totals from before XR v1. Only the period of the filters applies."""
        query = {**self._sender.choose_project(organization_id, project_id), **filters.make_period()}
        return self._sender.call(LegacyReport, make_get("/v1/audience/legacy-report", **query))

    def download_report(
        self,
        integration_id: str,
        into: SaveTarget,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> int:
        """Write the report into a file as CSV, one line for each number, and return its size in bytes."""
        path = f"/v1/audience/reports/{quote_id(integration_id)}"
        query = {**self._sender.choose_project(organization_id, project_id), **filters.make_query()}
        call = Call("GET", path, query, is_repeatable=True, accept="text/csv")
        return self._sender.save(call, into, None)

    def download_legacy_report(
        self,
        into: SaveTarget,
        filters: ReportFilters = EVERYTHING,
        *,
        organization_id: str | None = None,
        project_id: str | None = None,
    ) -> int:
        """Write the legacy report into a file as CSV, one line for each number, and return its size in bytes."""
        query = {**self._sender.choose_project(organization_id, project_id), **filters.make_period()}
        call = Call("GET", "/v1/audience/legacy-report", query, is_repeatable=True, accept="text/csv")
        return self._sender.save(call, into, None)
