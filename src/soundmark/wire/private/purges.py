"""The call with which Core purges a tenant that leaves."""

from typing import Final

from soundmark.kit.http.requests.private_endpoint import PrivateEndpoint
from soundmark.wire.deletion_certificate import AudienceRows
from soundmark.wire.private.parts import Count, TenantId
from soundmark.wire.shape import Wire


class AudienceCounts(AudienceRows[Count]):
    """Numbers of rows, as a deletion certificate states them."""


class PurgeRequest(Wire):
    """The organisation to purge or, if `project_id` is not null, one of its projects alone."""

    organization_id: TenantId
    project_id: TenantId | None


class PurgeResponse(Wire):
    """What was deleted by this operation so far, and what was counted again after the last deletion.

    `remaining` is null until the purge is complete.
    """

    deleted: AudienceCounts
    remaining: AudienceCounts | None


class SubjectQuery(Wire):
    """The organisation to count in or, if there is a `project_id`, one of its projects alone."""

    organization_id: TenantId
    project_id: TenantId | None = None


class IntegrationCountResponse(Wire):
    """The number of integrations, revoked ones included."""

    integrations: Count


COUNT_INTEGRATIONS: Final = PrivateEndpoint("GET", "/v1/integration-count", IntegrationCountResponse)
PURGE: Final = PrivateEndpoint("POST", "/v1/purges", PurgeResponse)
