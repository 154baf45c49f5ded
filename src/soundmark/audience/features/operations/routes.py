"""The route of operations."""

import json
from typing import Annotated

from fastapi import APIRouter, Path

from soundmark.audience.edge import Ctx, serve
from soundmark.audience.store import operations
from soundmark.kit.http.requests.routes import JsonRoute
from soundmark.kit.http.responses.problems import NotFound
from soundmark.kit.text.ids import may_be_id
from soundmark.wire.private.integrations import READ_OPERATION, OperationResponse

router = APIRouter(route_class=JsonRoute)


@serve(router, READ_OPERATION)
async def read_operation(ctx: Ctx, operation_id: Annotated[str, Path(max_length=1024)]) -> OperationResponse:
    """Read the result of an operation; wait for it if it is in progress.

    NotFound means that the operation has not been carried out yet. A request on its way may still do so; only a caller
    that knows of no such request can conclude that it never will be.

    Raises: NotFound.
    Source: API v1, "Lifecycle audit intents".
    """
    if not may_be_id(operation_id):
        raise NotFound
    async with ctx.db.transaction() as tx:
        await operations.lock(tx, operation_id)
        operation = await operations.find(tx, operation_id)
    if operation is None:
        raise NotFound
    return OperationResponse.from_record(operation, answer=json.loads(operation.answer))
