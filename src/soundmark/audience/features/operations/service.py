"""The question what became of an operation."""

from soundmark.audience.context import Context
from soundmark.audience.domain.operation import Operation
from soundmark.audience.store import operations
from soundmark.kit.ids import may_be_id
from soundmark.kit.problems import NotFound


async def read_operation(ctx: Context, operation_id: str) -> Operation:
    """What was done for an operation id.

    Whoever asks waits for one that is under way. Where there is none, it was not done, and a call that is still on its
    way may do it later: only who knows that none is can conclude that it never will be.

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
    return operation
