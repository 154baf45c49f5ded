"""The route of operations."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, Path

from soundmark.audience.domain.operation import OperationAction
from soundmark.audience.edge import Ctx
from soundmark.audience.features.operations import service
from soundmark.kit.http import JsonRoute
from soundmark.wire.shape import Wire

router = APIRouter(route_class=JsonRoute)


class OperationView(Wire):
    """What was done. `answer` is what was answered, without any secret."""

    id: str
    organization_id: str
    project_id: str
    integration_id: str
    action: OperationAction
    answer: dict[str, Any]


@router.get("/v1/operations/{operation_id}")
async def read_operation(ctx: Ctx, operation_id: Annotated[str, Path(max_length=1024)]) -> OperationView:
    """Read what was done for an operation id."""
    operation = await service.read_operation(ctx, operation_id)
    return OperationView(
        id=operation.id,
        organization_id=operation.organization_id,
        project_id=operation.project_id,
        integration_id=operation.integration_id,
        action=operation.action,
        answer=json.loads(operation.answer),
    )
