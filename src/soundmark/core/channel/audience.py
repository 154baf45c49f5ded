"""The client of the Audience component."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from soundmark.core.domain.audience.integration import Entitlement, Suspension, may_be_integration_id
from soundmark.core.domain.tenancy.closure import ClosureSubject, PurgedCounts
from soundmark.kit.crypto.secret import Secret
from soundmark.kit.http.outbound.private_call import PrivateChannel, PrivateRequest
from soundmark.kit.http.responses.problems import NotFound
from soundmark.kit.text.ids import may_be_id
from soundmark.kit.text.paging import BEGINNING, Position
from soundmark.wire.audience_event import EventAnswer
from soundmark.wire.audience_report import AudienceReport, LegacyReport
from soundmark.wire.private import integrations as private
from soundmark.wire.private import measurements, purges
from soundmark.wire.private.parts import CoreKey, ProjectQuery
from soundmark.wire.private.problems import IntegrationNotFound

_PURGE_CALLS_MAX: Final = 10_000  # Each deletes 10,000 rows at least.
PUSHED_AT_ONCE: Final = (
    500  # Integrations in one call: few enough to meet its deadline, and enough to keep the number of calls low.
)


@dataclass(frozen=True, slots=True)
class CreatedSecret:
    """An integration as Audience answered it, and its new HMAC secret."""

    integration: private.IntegrationResponse
    hmac_secret: Secret = field(repr=False)


class AudienceChannel:
    """Reads from Audience, and makes changes for which Core has written an audit intent.

    The `operation_id` of a change is the id of its audit intent: Audience makes the change once, however often it is
    sent. Every method raises AudienceUnavailable if the component is down, too slow or breaks the private contract; it
    is then unknown whether a change was made.
    """

    def __init__(self, channel: PrivateChannel) -> None:
        self._channel: Final = channel

    async def create_integration(
        self, body: private.CreateIntegrationRequest, *, operation_id: str, request_id: str
    ) -> CreatedSecret:
        """Create an active integration.

        Raises: EntitlementRequired.
        """
        request = PrivateRequest(request_id=request_id, operation_id=operation_id, body=body)
        created = await self._channel.call(private.CREATE_INTEGRATION, request)
        if created.integration.id != body.integration_id:
            raise self._channel.fail("other_integration")
        return self._check_secret(
            created, ProjectQuery(organization_id=body.organization_id, project_id=body.project_id)
        )

    async def list_integrations(
        self, project: ProjectQuery, *, before: Position | None, limit: int, request_id: str
    ) -> list[private.IntegrationResponse]:
        """List up to `limit` integrations of the project, newest first."""
        query = private.IntegrationsQuery(
            organization_id=project.organization_id,
            project_id=project.project_id,
            limit=limit,
            before_at=None if before is None else before.created_at,
            before_id=None if before is None else before.id,
        )
        request = PrivateRequest(request_id=request_id, query=query)
        found = await self._channel.call(private.LIST_INTEGRATIONS, request)
        return [self._check_tenant(each, project) for each in found.data]

    async def list_inventory(
        self, organization_id: str, project_id: str | None, *, count_max: int, request_id: str
    ) -> list[private.IntegrationResponse]:
        """List the integrations of the organisation, or of one of its projects, oldest first, in several calls.

        Not much more than `count_max` are read: a longer list means that there are more.
        """
        listed: list[private.IntegrationResponse] = []
        after = BEGINNING
        while len(listed) <= count_max:
            query = private.InventoryQuery(
                project_id=project_id, limit=private.STEP_MAX, after_at=after.created_at, after_id=after.id
            )
            request = PrivateRequest(request_id=request_id, path={"organization_id": organization_id}, query=query)
            found = (await self._channel.call(private.LIST_INVENTORY, request)).data
            for each in found:
                project = ProjectQuery(organization_id=organization_id, project_id=project_id or each.project_id)
                self._check_tenant(each, project)
            listed += found
            if len(found) < private.STEP_MAX:
                break
            after = Position(found[-1].created_at, found[-1].id)
        return listed

    async def get_integration(
        self, organization_id: str, project_id: str, integration_id: str, *, request_id: str
    ) -> private.IntegrationResponse:
        """Return one integration of the project.

        Raises: IntegrationNotFound.
        """
        if not may_be_id(project_id):
            raise IntegrationNotFound
        project = ProjectQuery(organization_id=organization_id, project_id=project_id)
        request = PrivateRequest(request_id=request_id, path=_path(integration_id), query=project)
        return self._check_tenant(await self._channel.call(private.READ_INTEGRATION, request), project)

    async def revoke_integration(
        self, project: ProjectQuery, integration_id: str, *, operation_id: str, request_id: str
    ) -> private.IntegrationResponse:
        """Revoke the integration and return it.

        Raises: IntegrationNotFound.
        """
        request = _change(project, integration_id, operation_id=operation_id, request_id=request_id)
        return self._check_tenant(await self._channel.call(private.REVOKE_INTEGRATION, request), project)

    async def rotate_secret(
        self, project: ProjectQuery, integration_id: str, *, operation_id: str, request_id: str
    ) -> CreatedSecret:
        """Replace the integration's secret. The old one is rejected from then on.

        Raises: IntegrationNotFound; IntegrationRevoked.
        """
        request = _change(project, integration_id, operation_id=operation_id, request_id=request_id)
        return self._check_secret(await self._channel.call(private.ROTATE_SECRET, request), project)

    async def change_retention(
        self,
        project: ProjectQuery,
        integration_id: str,
        body: private.ChangeRetentionRequest,
        *,
        operation_id: str,
        request_id: str,
    ) -> private.RetentionResponse:
        """Change the number of days for which the integration keeps its data.

        Raises: IntegrationNotFound; IntegrationRevoked.
        """
        request = _change(project, integration_id, body, operation_id=operation_id, request_id=request_id)
        return await self._channel.call(private.CHANGE_RETENTION, request)

    async def replace_core_key(
        self, project: ProjectQuery, integration_id: str, body: CoreKey, *, operation_id: str, request_id: str
    ) -> private.CoreKeyResponse:
        """Make the integration trust a key, and its previous key for seven more minutes.

        Raises: IntegrationNotFound; IntegrationRevoked.
        """
        request = _change(project, integration_id, body, operation_id=operation_id, request_id=request_id)
        return await self._channel.call(private.REPLACE_CORE_KEY, request)

    async def find_applied(self, operation_id: str, *, request_id: str) -> str | None:
        """Return the id of the integration on which the operation was carried out; None if it was not."""
        request = PrivateRequest(request_id=request_id, path={"operation_id": operation_id})
        try:
            applied = await self._channel.call(private.READ_OPERATION, request)
        except NotFound:
            return None
        if applied.id != operation_id:
            raise self._channel.fail("other_operation")
        return applied.integration_id

    async def put_entitlement(self, organization_id: str, entitlement: Entitlement, *, request_id: str) -> None:
        """Send an entitlement. Audience keeps the latest revision."""
        path = {"organization_id": organization_id, "mode": entitlement.mode}
        request = PrivateRequest(request_id=request_id, path=path, body=entitlement.terms())
        await self._channel.call(private.PUT_ENTITLEMENT, request)

    async def put_suspension(self, organization_id: str, suspension: Suspension, *, request_id: str) -> None:
        """Send whether an organisation is suspended. Audience keeps the latest revision."""
        body = private.SuspensionState(is_suspended=suspension.is_suspended, revision=suspension.revision)
        request = PrivateRequest(request_id=request_id, path={"organization_id": organization_id}, body=body)
        await self._channel.call(private.PUT_SUSPENSION, request)

    async def read_usage(self, organization_id: str, month: str, *, request_id: str) -> list[measurements.ModeUsage]:
        """Return the usage of `month`, such as 2026-11, in every mode."""
        query = measurements.UsageQuery(organization_id=organization_id, month=month)
        request = PrivateRequest(request_id=request_id, query=query)
        return (await self._channel.call(measurements.READ_USAGE, request)).modes

    async def push_core_key(self, body: private.TrustEverywhereRequest, *, request_id: str) -> tuple[int, str | None]:
        """Make the next integrations trust a key; return their number, and where to continue.

        The second is None if there are no more integrations.
        """
        request = PrivateRequest(request_id=request_id, body=body)
        pushed = await self._channel.call(private.TRUST_EVERYWHERE, request)
        if pushed.next is not None and pushed.next == body.after:
            raise self._channel.fail("no_progress")
        return len(pushed.data), pushed.next

    async def push_everywhere(
        self,
        core_key: CoreKey,
        *,
        still_signs: str | None = None,
        request_id: str,
        tell: Callable[[int], None] | None = None,
    ) -> int:
        """Make every integration that is not revoked trust `core_key`; return how many. `tell` gets the count so far.

        Safe to repeat after an interruption. The key `still_signs` remains trusted for seven minutes from now, even by
        integrations that received the new key long ago.
        """
        count, after = 0, None
        while True:
            body = private.TrustEverywhereRequest(
                key_id=core_key.key_id,
                public_key=core_key.public_key,
                after=after,
                limit=PUSHED_AT_ONCE,
                still_signs=still_signs,
            )
            pushed_count, after = await self.push_core_key(body, request_id=request_id)
            count += pushed_count
            if tell is not None:
                tell(count)
            if after is None:
                return count

    async def read_report(
        self, integration_id: str, query: measurements.ReportQuery, *, request_id: str
    ) -> AudienceReport:
        """Return the report of an integration.

        Raises: IntegrationNotFound; ReportTooLarge.
        """
        request = PrivateRequest(request_id=request_id, path=_path(integration_id), query=query)
        report = await self._channel.call(measurements.READ_REPORT, request)
        stated = (report.integration_id, report.filters.campaign_id, report.filters.xr_id, report.period.to)
        if stated != (integration_id, query.campaign_id, query.xr_id, query.to_at):
            raise self._channel.fail("other_report")
        return report

    async def put_legacy_days(self, body: measurements.PutLegacyDaysRequest, *, request_id: str) -> None:
        """Set the counts of all these days, or of none; safe to repeat."""
        request = PrivateRequest(request_id=request_id, body=body)
        if (await self._channel.call(measurements.PUT_LEGACY_DAYS, request)).days != len(body.days):
            raise self._channel.fail("other_days")

    async def read_legacy_report(self, query: measurements.LegacyReportQuery, *, request_id: str) -> LegacyReport:
        """Return the project's report from before XR v1.

        Raises: ReportTooLarge.
        """
        request = PrivateRequest(request_id=request_id, query=query)
        report = await self._channel.call(measurements.READ_LEGACY_REPORT, request)
        stated = (report.organization_id, report.project_id, report.period.to)
        if stated != (query.organization_id, query.project_id, query.to_at):
            raise self._channel.fail("other_report")
        return report

    async def forward_event(
        self, body: bytes, headers: Mapping[str, str], *, unknown_parameters: Sequence[str], request_id: str
    ) -> EventAnswer:
        """Forward an event unchanged, with these headers, and return the result.

        `unknown_parameters` are the names in its query string, which Audience rejects after checking the signature.

        Raises: the problems of `DELIVER_EVENT`.
        """
        query = dict.fromkeys(unknown_parameters, "")
        request = PrivateRequest(request_id=request_id, query=query, body=body, headers=headers)
        response = await self._channel.fetch(measurements.DELIVER_EVENT, request)
        event = self._channel.read(EventAnswer, response.body)
        if response.status != measurements.EVENT_STATUSES[event.status]:
            raise self._channel.fail("malformed")
        return event

    async def count_integrations(self, subject: ClosureSubject, *, request_id: str) -> int:
        """Return the number of integrations of a subject, revoked ones included."""
        query = purges.SubjectQuery(organization_id=subject.organization_id, project_id=subject.project_id)
        request = PrivateRequest(request_id=request_id, query=query)
        return (await self._channel.call(purges.COUNT_INTEGRATIONS, request)).integrations

    async def purge(self, subject: ClosureSubject, *, operation_id: str, request_id: str) -> PurgedCounts:
        """Delete everything of a subject, in as many calls as it takes; return what was deleted.

        Safe to repeat with the same id, also after it was completed.
        """
        body = purges.PurgeRequest(organization_id=subject.organization_id, project_id=subject.project_id)
        request = PrivateRequest(request_id=request_id, operation_id=operation_id, body=body)
        for _ in range(_PURGE_CALLS_MAX):
            purged = await self._channel.call(purges.PURGE, request)
            if purged.remaining is not None:
                if any(purged.remaining.model_dump().values()):
                    raise self._channel.fail("rows_remain")
                return PurgedCounts(**purged.deleted.model_dump())
        raise self._channel.fail("endless_purge")

    async def is_ready(self) -> bool:
        """Return whether the component is ready."""
        return await self._channel.is_ready()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._channel.aclose()

    def _check_tenant(
        self, integration: private.IntegrationResponse, project: ProjectQuery
    ) -> private.IntegrationResponse:
        """Return the integration, which must belong to this project.

        Raises: AudienceUnavailable.
        """
        tenant = (integration.organization_id, integration.project_id)
        if tenant != (project.organization_id, project.project_id) or not may_be_integration_id(integration.id):
            raise self._channel.fail("of_another_tenant")
        return integration

    def _check_secret(self, response: private.IntegrationSecretResponse, project: ProjectQuery) -> CreatedSecret:
        """Return the integration, as `_check_tenant` does, and its secret, which must be present.

        Raises: AudienceUnavailable.
        """
        if response.hmac_secret is None:
            raise self._channel.fail("without_secret")
        return CreatedSecret(self._check_tenant(response.integration, project), Secret(response.hmac_secret))


def _path(integration_id: str) -> dict[str, str]:
    """Return the path parameters of one integration.

    Raises: IntegrationNotFound for a text that cannot be an integration's id.
    """
    if not may_be_integration_id(integration_id):
        raise IntegrationNotFound
    return {"integration_id": integration_id}


def _change(
    project: ProjectQuery,
    integration_id: str,
    body: private.ChangeRetentionRequest | CoreKey | None = None,
    *,
    operation_id: str,
    request_id: str,
) -> PrivateRequest:
    return PrivateRequest(
        request_id=request_id, operation_id=operation_id, path=_path(integration_id), query=project, body=body
    )
