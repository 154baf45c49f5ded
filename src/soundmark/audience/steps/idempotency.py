"""Carrying out each operation only once."""

from datetime import datetime
from typing import TypeVar

from soundmark.audience.domain.operation import Operation, RequestedOperation
from soundmark.audience.problems import OperationConflict
from soundmark.audience.store import operations
from soundmark.kit.postgres.transaction import Tx
from soundmark.wire.shape import Wire

W = TypeVar("W", bound=Wire)


async def find_response(tx: Tx, operation: RequestedOperation, shape: type[W]) -> W | None:
    """Return the response of an operation that was carried out before; None if it was not.

    This is the first step of a command. It locks the operation, so that a repeat waits while the first is in progress.

    Raises: OperationConflict if the id belongs to another operation.
    """
    await operations.lock(tx, operation.id)
    done = await operations.find(tx, operation.id)
    if done is None:
        return None
    workspace = (operation.workspace.organization_id, operation.workspace.project_id)
    is_same = (done.organization_id, done.project_id, done.action) == (*workspace, operation.action)
    if not is_same or operation.integration_id not in {None, done.integration_id}:
        raise OperationConflict
    return shape.model_validate_json(done.answer)


async def save_response(
    tx: Tx, operation: RequestedOperation, integration_id: str, response: Wire, *, now: datetime
) -> None:
    """Record that the operation was carried out; repeats get `response`, which must hold no secret."""
    done = Operation(
        id=operation.id,
        organization_id=operation.workspace.organization_id,
        project_id=operation.workspace.project_id,
        integration_id=integration_id,
        action=operation.action,
        answer=response.model_dump_json(),
    )
    await operations.insert(tx, done, now=now)
