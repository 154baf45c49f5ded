"""The Audience component, in Core's words."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from http import HTTPStatus
from typing import Any, Final

import msgspec

from soundmark.core.channel.audience_answers import (
    CoreKeyRow,
    IntegrationRow,
    IntegrationRows,
    LegacyDaysRow,
    OperationRow,
    PushedRow,
    RetentionRow,
    UsageRow,
    WithSecretRow,
    failed,
    integration_of,
    read,
    read_whole,
    with_secret_of,
)
from soundmark.core.domain.audience import (
    AudienceMode,
    CoreKey,
    CoreKeyReplaced,
    Entitlement,
    Integration,
    ModeUsage,
    RetentionChanged,
    Wanted,
    WithSecret,
    may_be_integration_id,
)
from soundmark.core.problems import (
    EntitlementRequired,
    IntegrationNotFound,
    IntegrationRevoked,
    ReportTooLarge,
)
from soundmark.kit import base64url
from soundmark.kit.paging import Position
from soundmark.kit.private_call import (
    PROBLEM_TYPE,
    Method,
    PrivateAnswer,
    PrivateCallFailed,
    PrivateChannel,
    Query,
)
from soundmark.kit.problems import NotFound, Problem
from soundmark.kit.timestamps import format_timestamp
from soundmark.wire.audience_report import AudienceReport, LegacyReport

# What Audience may declare, by code. Everything else that is not the agreed answer is a failure of Audience's.
_DECLARED: Final[Mapping[str, type[Problem]]] = {
    problem.code: problem
    for problem in (EntitlementRequired, IntegrationNotFound, IntegrationRevoked, NotFound, ReportTooLarge)
}
PUSHED_AT_ONCE: Final = 500  # Integrations in one call: far from its deadline, and few calls for many of them.


class AudienceChannel:
    """Asks Audience, and has it change what Core's own audit log tells of.

    Of what is changed, `operation_id` is the id of the audit intent: Audience does it once, whatever is repeated. Every
    method raises AudienceUnavailable when the component is down, late or answers what it should not; of a change it is
    then not known whether it was made.
    """

    def __init__(self, channel: PrivateChannel) -> None:
        self._channel: Final = channel

    async def create_integration(  # noqa: PLR0913 - one argument for each fact of an integration
        self,
        organization_id: str,
        project_id: str,
        *,
        mode: AudienceMode,
        retention_days: int,
        core_key: CoreKey,
        entitlement: Entitlement | None,
        operation_id: str,
        request_id: str,
    ) -> WithSecret:
        """A new, active integration and its secret.

        Raises: EntitlementRequired.
        """
        body = {
            "organization_id": organization_id,
            "project_id": project_id,
            "mode": mode,
            "retention_days": retention_days,
            "core_key": _told_key(core_key),
            "entitlement": None if entitlement is None else _told_entitlement(entitlement),
        }
        answer = await self._ask("POST", "/v1/integrations", body, operation_id=operation_id, request_id=request_id)
        return with_secret_of(read(answer, WithSecretRow, HTTPStatus.CREATED), organization_id, project_id)

    async def list_integrations(
        self, organization_id: str, project_id: str, *, before: Position | None, limit: int, request_id: str
    ) -> list[Integration]:
        """Up to `limit` integrations of the project, newest first."""
        query: dict[str, str | int | None] = {**_within(organization_id, project_id), "limit": limit}
        if before is not None:
            query |= {"before_at": format_timestamp(before.created_at), "before_id": before.id}
        answer = await self._ask("GET", "/v1/integrations", query=query, request_id=request_id)
        found = read(answer, IntegrationRows).data
        return [integration_of(row, organization_id, project_id) for row in found]

    async def get_integration(
        self, organization_id: str, project_id: str, integration_id: str, *, request_id: str
    ) -> Integration:
        """One integration of the project.

        Raises: IntegrationNotFound.
        """
        answer = await self._ask(
            "GET", _path(integration_id), query=_within(organization_id, project_id), request_id=request_id
        )
        return integration_of(read(answer, IntegrationRow), organization_id, project_id)

    async def revoke_integration(
        self, organization_id: str, project_id: str, integration_id: str, *, operation_id: str, request_id: str
    ) -> Integration:
        """The integration, revoked.

        Raises: IntegrationNotFound.
        """
        answer = await self._ask(
            "POST",
            _path(integration_id, "/revoke"),
            query=_within(organization_id, project_id),
            operation_id=operation_id,
            request_id=request_id,
        )
        return integration_of(read(answer, IntegrationRow), organization_id, project_id)

    async def rotate_secret(
        self, organization_id: str, project_id: str, integration_id: str, *, operation_id: str, request_id: str
    ) -> WithSecret:
        """The integration with another secret; the one before it counts no more.

        Raises: IntegrationNotFound; IntegrationRevoked.
        """
        answer = await self._ask(
            "POST",
            _path(integration_id, "/secret"),
            query=_within(organization_id, project_id),
            operation_id=operation_id,
            request_id=request_id,
        )
        return with_secret_of(read(answer, WithSecretRow), organization_id, project_id)

    async def change_retention(  # noqa: PLR0913 - whose, which, what and why
        self,
        organization_id: str,
        project_id: str,
        integration_id: str,
        *,
        retention_days: int,
        operation_id: str,
        request_id: str,
    ) -> RetentionChanged:
        """The integration keeps what it measured for another number of days.

        Raises: IntegrationNotFound; IntegrationRevoked.
        """
        answer = await self._ask(
            "PATCH",
            _path(integration_id, "/retention"),
            {"retention_days": retention_days},
            query=_within(organization_id, project_id),
            operation_id=operation_id,
            request_id=request_id,
        )
        changed = read(answer, RetentionRow)
        return RetentionChanged(**msgspec.structs.asdict(changed))

    async def replace_core_key(  # noqa: PLR0913 - as above
        self,
        organization_id: str,
        project_id: str,
        integration_id: str,
        *,
        core_key: CoreKey,
        operation_id: str,
        request_id: str,
    ) -> CoreKeyReplaced:
        """The integration trusts `core_key`, and the one before it for seven more minutes.

        Raises: IntegrationNotFound; IntegrationRevoked.
        """
        answer = await self._ask(
            "POST",
            _path(integration_id, "/core-key"),
            _told_key(core_key),
            query=_within(organization_id, project_id),
            operation_id=operation_id,
            request_id=request_id,
        )
        replaced = read(answer, CoreKeyRow)
        return CoreKeyReplaced(replaced.integration_id, replaced.core_key_id)

    async def has_applied(self, operation_id: str, *, request_id: str) -> bool:
        """Whether the operation was carried out."""
        try:
            answer = await self._ask("GET", f"/v1/operations/{operation_id}", request_id=request_id)
        except NotFound:
            return False
        if read(answer, OperationRow).id != operation_id:
            raise failed("other_operation")
        return True

    async def put_entitlement(self, organization_id: str, entitlement: Entitlement, *, request_id: str) -> None:
        """Audience knows this entitlement, or a later one."""
        path = f"/v1/entitlements/{organization_id}/{entitlement.mode}"
        answer = await self._ask("PUT", path, _told_entitlement(entitlement), request_id=request_id)
        if not HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
            raise failed("refused", answer.status)

    async def usage(self, organization_id: str, month: str, *, request_id: str) -> list[ModeUsage]:
        """What was measured in `month`, such as 2026-11, by mode; a mode of which there is nothing is left out."""
        query = {"organization_id": organization_id, "month": month}
        answer = await self._ask("GET", "/v1/usage", query=query, request_id=request_id)
        return [ModeUsage(row.mode, row.events, row.active_integrations) for row in read(answer, UsageRow).modes]

    async def push_core_key(
        self, core_key: CoreKey, *, still_signs: str | None, after: str | None, limit: int, request_id: str
    ) -> tuple[int, str | None]:
        """The next `limit` integrations trust `core_key`: how many they are, and behind which one to go on.

        The second is None when there are no more.
        """
        body = {**_told_key(core_key), "still_signs": still_signs, "after": after, "limit": limit}
        pushed = read(await self._ask("POST", "/v1/core-keys", body, request_id=request_id), PushedRow)
        if pushed.next is not None and pushed.next == after:
            raise failed("no_progress")
        return len(pushed.data), pushed.next

    async def push_everywhere(
        self,
        core_key: CoreKey,
        *,
        still_signs: str | None = None,
        request_id: str,
        tell: Callable[[int], None] | None = None,
    ) -> int:
        """Every integration that is not revoked trusts `core_key`; how many they are. `tell` hears how many so far.

        Safe to repeat, which is what to do after an interruption. The key that `still_signs` is trusted for seven
        minutes from now on, however long ago an integration was told of the one that comes.
        """
        count, after = 0, None
        while True:
            pushed, after = await self.push_core_key(
                core_key, still_signs=still_signs, after=after, limit=PUSHED_AT_ONCE, request_id=request_id
            )
            count += pushed
            if tell is not None:
                tell(count)
            if after is None:
                return count

    async def report(
        self, organization_id: str, project_id: str, integration_id: str, wanted: Wanted, *, request_id: str
    ) -> AudienceReport:
        """What the integration measured.

        Raises: IntegrationNotFound; ReportTooLarge.
        """
        if not may_be_integration_id(integration_id):
            raise IntegrationNotFound
        answer = await self._ask(
            "GET",
            f"/v1/reports/{integration_id}",
            query={
                **_within(organization_id, project_id),
                **_told_period(wanted.from_at, wanted.to_at),
                "campaign_id": wanted.campaign_id,
                "xr_id": wanted.xr_id,
            },
            request_id=request_id,
        )
        report = read_whole(answer, AudienceReport)
        told = (report.integration_id, report.filters.campaign_id, report.filters.xr_id, report.period.to)
        if told != (integration_id, wanted.campaign_id, wanted.xr_id, wanted.to_at):
            raise failed("other_report")
        return report

    async def put_legacy_days(
        self, organization_id: str, project_id: str, days: Mapping[date, int], *, request_id: str
    ) -> None:
        """Each of these days has this count, all of them or none; repeating it is safe."""
        body = {
            "organization_id": organization_id,
            "project_id": project_id,
            "days": [{"day": day.isoformat(), "events": events} for day, events in days.items()],
        }
        answer = await self._ask("PUT", "/v1/legacy-days", body, request_id=request_id)
        if read(answer, LegacyDaysRow).days != len(days):
            raise failed("other_days")

    async def legacy_report(
        self,
        organization_id: str,
        project_id: str,
        *,
        from_at: datetime | None,
        to_at: datetime,
        request_id: str,
    ) -> LegacyReport:
        """What was counted in the project before XR v1.

        Raises: ReportTooLarge.
        """
        query = {**_within(organization_id, project_id), **_told_period(from_at, to_at)}
        answer = await self._ask("GET", "/v1/legacy-report", query=query, request_id=request_id)
        report = read_whole(answer, LegacyReport)
        if (report.organization_id, report.project_id, report.period.to) != (organization_id, project_id, to_at):
            raise failed("other_report")
        return report

    async def forward_event(
        self, body: bytes, headers: Mapping[str, str], *, unknown_parameters: Sequence[str], request_id: str
    ) -> PrivateAnswer:
        """Return what Audience answers to an event, whatever it is, as long as it is a JSON object."""
        query = dict.fromkeys(unknown_parameters, "")
        try:
            answer = await self._channel.forward("/v1/events", body, headers, query=query, request_id=request_id)
            answer.json_object()
        except PrivateCallFailed as error:
            raise failed(error.reason) from None
        return answer

    async def is_ready(self) -> bool:
        """Whether the component is ready."""
        return await self._channel.is_ready()

    async def aclose(self) -> None:
        """Let go of the connections."""
        await self._channel.aclose()

    async def _ask(  # noqa: PLR0913 - one argument for each part of a request
        self,
        method: Method,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Query | None = None,
        request_id: str,
        operation_id: str | None = None,
    ) -> PrivateAnswer:
        """The answer, unless it declares a problem.

        Raises: the declared problem; AudienceUnavailable.
        """
        try:
            answer = await self._channel.send(
                method,
                path,
                body,
                query=query,
                request_id=request_id,
                operation_id=operation_id,
            )
            if answer.media_type == PROBLEM_TYPE:
                declared = _DECLARED.get(str(answer.json_object().get("code")))
                if declared is not None and answer.status == declared.kind:
                    raise declared
        except PrivateCallFailed as error:
            raise failed(error.reason) from None
        return answer


def _path(integration_id: str, rest: str = "") -> str:
    """The path of one integration.

    Raises: IntegrationNotFound for what is no id, and so cannot be one's.
    """
    if not may_be_integration_id(integration_id):
        raise IntegrationNotFound
    return f"/v1/integrations/{integration_id}{rest}"


def _told_period(from_at: datetime | None, to_at: datetime) -> dict[str, str | None]:
    return {"from": None if from_at is None else format_timestamp(from_at), "to": format_timestamp(to_at)}


def _within(organization_id: str, project_id: str) -> dict[str, str]:
    return {"organization_id": organization_id, "project_id": project_id}


def _told_key(core_key: CoreKey) -> dict[str, str]:
    return {"key_id": core_key.key_id, "public_key": base64url.encode(core_key.public_key)}


def _told_entitlement(entitlement: Entitlement) -> dict[str, Any]:
    return {
        "monthly_event_quota": entitlement.monthly_event_quota,
        "ends_at": entitlement.ends_at and format_timestamp(entitlement.ends_at),
        "revision": entitlement.revision,
    }
