"""The route of offline packs."""

from http import HTTPStatus
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from soundmark.core.edge.ids import ResourceId
from soundmark.core.edge.operations import Operation, Operations
from soundmark.core.edge.parameters import Ctx, Tenant
from soundmark.core.features.codes.offline_packs import example, service
from soundmark.core.features.codes.offline_packs.wire import MakeOfflinePack
from soundmark.core.problems import (
    CampaignNotFound,
    OfflinePackTooLarge,
    ProjectNotFound,
    ResourceDeletionInProgress,
)
from soundmark.kit.http.responses.problems import RateLimited
from soundmark.wire.offline_pack import OfflinePack
from soundmark.wire.private.problems import OrganizationSuspended

operations = Operations("Codes")


@operations.add(
    "POST",
    "/v1/offline-packs",
    Operation(
        "offline_pack.make",
        problems=(
            ProjectNotFound,
            CampaignNotFound,
            OfflinePackTooLarge,
            ResourceDeletionInProgress,
            OrganizationSuspended,
            RateLimited,
        ),
    ),
    status=HTTPStatus.CREATED,
    response_model=OfflinePack,
    example=example.PACK,
)
async def make_offline_pack(
    ctx: Ctx,
    scope: Tenant,
    project_id: Annotated[ResourceId, Query(description="The project of the Codes.")],
    body: MakeOfflinePack,
) -> Response:
    """Sign the active Codes of a campaign or a project for receivers that cannot reach the service.

    Measured Codes are left out. At most 10,000 Codes and 32 MiB. Core keeps only a record of the pack: revoking a Code
    does not change the packs that it is in, so choose a short validity. An organisation can make one pack at a time and
    60 an hour.
    """
    document = await service.make_pack(ctx, scope, project_id, body.campaign_id, valid_for_s=body.valid_for_s)
    return Response(document, HTTPStatus.CREATED, media_type="application/json")
