"""Every organisation, reports of abuse, platform settings, tests of systems, jobs, and release readiness."""

from collections.abc import AsyncIterator
from typing import Literal

from soundmark_sdk.client._async.group import AsyncGroup
from soundmark_sdk.client.calls import PAGE_SIZE_MAX, make_call, make_get, quote_id
from soundmark_sdk.client.records import (
    AbuseReport,
    Job,
    Page,
    PlatformOrganization,
    PlatformSettings,
    ReleaseReadiness,
    SecretStatus,
    Setting,
    SuspendedOrganization,
    SystemTest,
)

AbuseStatus = Literal["open", "closed"]
OrganizationStatus = Literal["active", "suspended", "closing"]
JobState = Literal["failed", "retrying"]
SystemName = Literal["mail", "desk", "accounting", "card"]


class AsyncPlatform(AsyncGroup):
    """Organisations, reports of abuse, settings, jobs and release readiness, for administrators of the platform."""

    async def organizations_page(
        self,
        *,
        search: str | None = None,
        status: OrganizationStatus | None = None,
        limit: int = PAGE_SIZE_MAX,
        cursor: str | None = None,
    ) -> Page[PlatformOrganization]:
        """Return one page of all organisations. `search` is a whole id, or the beginning of a name."""
        call = make_get("/v1/platform/organizations", search=search, status=status, limit=limit, cursor=cursor)
        return await self._sender.get_page(PlatformOrganization, call)

    def organizations(
        self, *, search: str | None = None, status: OrganizationStatus | None = None, page_size: int = PAGE_SIZE_MAX
    ) -> AsyncIterator[PlatformOrganization]:
        """Yield every organisation. `search` is a whole id, or the beginning of a name."""
        call = make_get("/v1/platform/organizations", search=search, status=status, limit=page_size)
        return self._sender.iterate(PlatformOrganization, call)

    async def suspend(self, organization_id: str, reason: str) -> SuspendedOrganization:
        """Suspend an organisation, or replace the reason: none of its Codes resolves from the answer on."""
        path = f"/v1/platform/organizations/{quote_id(organization_id)}/suspension"
        call = make_call("PUT", path, {"reason": reason}, is_repeatable=True)
        return await self._sender.call(SuspendedOrganization, call)

    async def restore(self, organization_id: str) -> PlatformOrganization:
        """End the suspension of an organisation."""
        path = f"/v1/platform/organizations/{quote_id(organization_id)}/suspension"
        return await self._sender.call(PlatformOrganization, make_call("DELETE", path, is_repeatable=True))

    async def abuse_reports_page(
        self, *, status: AbuseStatus | None = None, limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[AbuseReport]:
        """Return one page of the reports of abuse."""
        call = make_get("/v1/platform/abuse-reports", status=status, limit=limit, cursor=cursor)
        return await self._sender.get_page(AbuseReport, call)

    def abuse_reports(
        self, *, status: AbuseStatus | None = None, page_size: int = PAGE_SIZE_MAX
    ) -> AsyncIterator[AbuseReport]:
        """Yield every report of abuse."""
        return self._sender.iterate(AbuseReport, make_get("/v1/platform/abuse-reports", status=status, limit=page_size))

    async def put_abuse_report(self, report_id: str, status: AbuseStatus, note: str | None = None) -> AbuseReport:
        """Close or reopen a report of abuse, and replace the note on it."""
        path = f"/v1/platform/abuse-reports/{quote_id(report_id)}"
        call = make_call("PUT", path, {"status": status, "note": note}, is_repeatable=True)
        return await self._sender.call(AbuseReport, call)

    async def settings(self) -> PlatformSettings:
        """Return every setting and its source, and for each credential only whether it is set."""
        return await self._sender.call(PlatformSettings, make_get("/v1/platform/settings"))

    async def put_secret(self, name: str, value: str) -> SecretStatus:
        """Set a credential, and replace the previous one."""
        path = f"/v1/platform/settings/secrets/{quote_id(name)}"
        return await self._sender.call(SecretStatus, make_call("PUT", path, {"value": value}, is_repeatable=True))

    async def put_configuration(self, name: str, value: str | float | bool | None) -> Setting:
        """Override a setting; None removes the override."""
        path = f"/v1/platform/settings/configuration/{quote_id(name)}"
        return await self._sender.call(Setting, make_call("PUT", path, {"value": value}, is_repeatable=True))

    async def release_readiness(self) -> ReleaseReadiness:
        """Return the release status of the receivers' SDK."""
        return await self._sender.call(ReleaseReadiness, make_get("/v1/platform/release-readiness"))

    async def test_system(self, system: SystemName) -> SystemTest:
        """Use a system once with the current settings, and return whether it works."""
        path = f"/v1/platform/systems/{quote_id(system)}/test"
        return await self._sender.call(SystemTest, make_call("POST", path, is_repeatable=False))

    async def jobs_page(
        self, *, state: JobState = "failed", limit: int = PAGE_SIZE_MAX, cursor: str | None = None
    ) -> Page[Job]:
        """Return one page of the jobs of Core's worker that failed, or that have run and run again."""
        call = make_get("/v1/platform/jobs", state=state, limit=limit, cursor=cursor)
        return await self._sender.get_page(Job, call)

    def jobs(self, *, state: JobState = "failed", page_size: int = PAGE_SIZE_MAX) -> AsyncIterator[Job]:
        """Yield every job of Core's worker that failed, or that has run and runs again."""
        return self._sender.iterate(Job, make_get("/v1/platform/jobs", state=state, limit=page_size))

    async def retry_job(self, job_id: str) -> Job:
        """Let a failed job run again, within seconds."""
        call = make_call("POST", f"/v1/platform/jobs/{quote_id(job_id)}/retry", is_repeatable=False)
        return await self._sender.call(Job, call)
